"""The audit log: who did what, when, from where. Append-only;
written in the transaction of what it tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec

from paydesk.core.card_numbers import masked_values
from paydesk.core.paging import Page
from paydesk.core.storable import storable_json, storable_text
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "audit.sql")

PERSONAL = 0
"""The merchant_id of what concerns a person alone."""

_LONGEST_SUBJECT = 200


class Action(StrEnum):
    """What was done."""

    signed_up = "signed_up"
    logged_in = "logged_in"
    log_in_failed = "log_in_failed"
    logged_out = "logged_out"
    handed_over = "handed_over"
    session_ended = "session_ended"
    confirmed_password = "confirmed_password"  # noqa: S105 (a name)
    password_changed = "password_changed"  # noqa: S105
    password_reset_asked = "password_reset_asked"  # noqa: S105
    password_reset = "password_reset"  # noqa: S105
    email_change_asked = "email_change_asked"
    email_changed = "email_changed"
    email_confirmed = "email_confirmed"
    profile_changed = "profile_changed"
    second_factor_added = "second_factor_added"
    second_factor_removed = "second_factor_removed"
    second_factor_reset = "second_factor_reset"
    second_factor_failed = "second_factor_failed"
    recovery_code_used = "recovery_code_used"
    recovery_codes_renewed = "recovery_codes_renewed"
    operator_created = "operator_created"
    operator_removed = "operator_removed"
    merchant_opened = "merchant_opened"
    member_invited = "member_invited"
    invitation_withdrawn = "invitation_withdrawn"
    member_joined = "member_joined"
    role_changed = "role_changed"
    member_removed = "member_removed"
    key_shown = "key_shown"
    key_rotated = "key_rotated"
    key_ended = "key_ended"
    integration_changed = "integration_changed"
    settings_changed = "settings_changed"
    test_mode_changed = "test_mode_changed"
    test_clock_moved = "test_clock_moved"
    test_side_reset = "test_side_reset"
    go_live_asked = "go_live_asked"
    go_live_approved = "go_live_approved"
    go_live_refused = "go_live_refused"
    profile_change_asked = "profile_change_asked"
    profile_change_withdrawn = "profile_change_withdrawn"
    profile_change_approved = "profile_change_approved"
    profile_change_refused = "profile_change_refused"
    merchant_suspended = "merchant_suspended"
    merchant_resumed = "merchant_resumed"
    fee_plan_changed = "fee_plan_changed"
    payment_refunded = "payment_refunded"
    subscription_cancelled = "subscription_cancelled"
    subscription_changed = "subscription_changed"
    delivery_confirmed = "delivery_confirmed"
    evidence_given = "evidence_given"
    pingback_resent = "pingback_resent"
    test_event_sent = "test_event_sent"
    exported = "exported"
    payout_changed = "payout_changed"
    bank_account_read = "bank_account_read"
    outcome_asked = "outcome_asked"
    mail_resent = "mail_resent"
    alarm_settled = "alarm_settled"
    difference_accepted = "difference_accepted"
    customer_erased = "customer_erased"
    customer_exported = "customer_exported"
    missed_periods_wanted = "missed_periods_wanted"
    card_guard_changed = "card_guard_changed"
    card_pause_lifted = "card_pause_lifted"
    card_tries_forgotten = "card_tries_forgotten"
    acquirer_added = "acquirer_added"
    acquirer_changed = "acquirer_changed"
    hold_accepted = "hold_accepted"
    purchase_given_back = "purchase_given_back"
    searched = "searched"
    customer_looked_at = "customer_looked_at"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: a person (None: the command line, a program with a key, or somebody who could not
    log in), from an address, in what part.
    """

    person_id: int | None
    client_address: str
    operator: bool = False


COMMAND_LINE = Actor(None, "command line", operator=True)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of the log; `name` and `email` are the person's present ones, empty for nobody."""

    merchant_id: int
    id: int
    at: datetime
    person_id: int | None
    name: str
    email: str
    operator: bool
    client_address: str
    action: Action
    subject: str
    details_json: str

    @property
    def details(self) -> dict[str, object]:
        """What else is known, by its names."""
        return msgspec.json.decode(self.details_json, type=dict[str, object])


async def record(
    connection: Connection,
    actor: Actor,
    action: Action,
    *,
    now: datetime,
    merchant_id: int = PERSONAL,
    shop: Shop | None = None,
    subject: str = "",
    details: Mapping[str, object] | None = None,
) -> None:
    """Write one line, on the connection whose transaction makes the change.
    `now` is real time, never a test clock's.

    Args: shop instead of merchant_id for what was done on one side of it, which a line about test
    data says (`test`); subject names what it was done to (`payment 13330`, `person 5`); details are
    JSON and hold no secret, and nothing of a customer but ids: the log can't be changed when a
    customer is erased.
    """
    side = {"test": True} if shop is not None and not shop.live else {}
    await queries.record(
        connection,
        merchant_id=merchant_id if shop is None else shop.merchant_id,
        person_id=actor.person_id,
        operator=actor.operator,
        client_address=actor.client_address,
        action=action,
        subject=storable_text(subject, longest=_LONGEST_SUBJECT),
        details=storable_json(masked_values({**(details or {}), **side})),
        now=now,
    )


async def list_entries(
    database: Database,
    merchant_id: int,
    page: Page,
    *,
    action: Action | None = None,
    person_id: int | None = None,
) -> list[AuditEntry]:
    """A page of a merchant's log, newest first; the last one's
    (at, id) is the next page's `before`.
    """
    cut = {"merchant_id": merchant_id, **page.parameters()}
    if person_id is not None:
        rows = queries.list_entries_of_member(database, person_id=person_id, action=action, **cut)
    elif action is not None:
        rows = queries.list_entries_of_action(database, action=action, **cut)
    else:
        rows = queries.list_entries(database, **cut)
    return await records_of(AuditEntry, rows)


async def list_own_entries(database: Database, person_id: int, page: Page) -> list[AuditEntry]:
    """A page of what concerns a person's own account, newest first:
    log-ins, failed ones, changes of the password.
    """
    return await records_of(AuditEntry, queries.list_own_entries(database, person_id=person_id, **page.parameters()))
