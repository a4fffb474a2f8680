"""How the rows of a merchant who is in two cells are compared, table by table: what never changes
of them, what comes to pass once, and what only grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_ENDED = "case when t.finished_at is not null then 1 end"


@dataclass(frozen=True, slots=True)
class Compared:
    """How rows `t` of a table are compared, in SQL.

    A row has a `key` in both cells, what never changes of it (`same`), what comes to pass `once`,
    and what `grows`; where both are of one `version`, both have one `state`. People see it as
    `shown`. Where somebody takes rows away in good order, those that were `made` before something
    that both know are missed by nobody; nor are those that are not `live`, where the test side was
    emptied. `of` is the table, and others that are read with it. What is found `may_be` something
    that is no loss, which cells can't tell, but people.
    """

    same: str = "t.created_at"
    key: str = "t.id"
    shown: str = "t.id"
    once: Sequence[str] = ()
    grows: Sequence[str] = ()
    version: str = "null"
    state: str = "null"
    made: str = "null"
    live: str = "t.live"
    of: str = ""
    may_be: str = ""

    @property
    def facts(self) -> str:
        """What a row comes to, as both cells put it."""
        once = ", ".join(f"{one} is not null" for one in self.once)
        return (
            f"row({self.key})::text as key, row({self.same})::text as same, array[{once}]::boolean[] as once, "
            f"array[{', '.join(self.grows)}]::numeric[] as grows, ({self.version})::text as version, "
            f"({self.state})::text as state"
        )


_PERFORMED = Compared(same="t.created_at, t.idempotency_key", version=_ENDED, state="t.state", once=("t.finished_at",))
_MADE = Compared()
_OF_BOTH_SIDES = "true"
_SET = Compared(
    key="t.merchant_id",
    shown="t.merchant_id",
    same="",
    grows=("extract(epoch from t.changed_at)",),
    live=_OF_BOTH_SIDES,
)

COMPARED: Final = {
    # A refund that fails, and a dispute that is won, take back what was refunded and charged back.
    # Until it is paid its attempts tell how it stands, each of which may be followed by another.
    "payment": Compared(
        once=("t.paid_at", "t.captured_at"),
        grows=("t.revision",),
        version="case when t.paid_at is not null then t.revision end",
        state="row(t.state, t.refunded, t.charged_back)",
    ),
    # What was given up, and approved late, is undone.
    "payment_attempt": Compared(
        same="t.created_at, t.idempotency_key",
        once=("t.finished_at", "case when t.state in ('voiding', 'voided') then 1 end"),
        version="case when t.finished_at is not null and t.state not in ('voiding', 'voided') then 1 end",
        state="t.state",
    ),
    # A refund that was made may fail later.
    "movement": Compared(
        same="t.created_at, t.idempotency_key",
        once=("t.finished_at", "t.failed_at"),
        version="case when t.finished_at is not null and t.failed_at is null then 1 end",
        state="t.state",
    ),
    "subscription": Compared(
        once=("t.date_active", "t.date_paid", "t.date_cancelled", "t.date_stopped", "t.date_expired"),
        grows=("t.revision",),
        version="t.revision",
        state="t.state",
    ),
    # Each cell books a dispute that it reads by a number of its own; how it stands, which
    # banks decide anew, acquirers tell the other cell, too.
    "chargeback": Compared(
        key="t.live, t.payment_id, t.acquirer, coalesce(nullif(t.acquirer_reference, ''), t.id::text)",
        same="t.currency",
        once=("t.evidence_at",),
        grows=("t.takes", "t.returns"),
    ),
    "payout": Compared(same="t.at, t.currency, t.amount"),
    # What falls due is booked in each cell alike, by whoever works there.
    "ledger_posting": Compared(
        key=(
            "t.live, t.payment_id, t.payout_id, t.kind, t.currency, t.acquirer, t.pending, t.available, t.reserve, "
            "t.fees, t.bank, case when t.payment_id is null and t.payout_id is null then t.at end"
        ),
        same="",
    ),
    # One that was refused, which moves nothing, may be asked for again.
    "purchase_given_back": Compared(
        key="t.acquirer, t.idempotency_key",
        shown="t.idempotency_key",
        once=("case when t.state = 'done' then 1 end",),
        live=_OF_BOTH_SIDES,
    ),
    "instrument_charge": Compared(key="t.attempt_id", shown="t.attempt_id"),
    "card": _MADE,
    "card_change": _PERFORMED,
    "customer": Compared(once=("t.erased_at",)),
    # Who is erased gets another seed.
    "shopper": Compared(
        same="", once=("t.erased_at",), version="case when t.erased_at is null then 1 end", state="t.seed"
    ),
    "saved_instrument": Compared(once=("t.removed_at", "t.charge_revoked_at")),
    "subscription_change": Compared(once=("t.finished_at",), version=_ENDED, state="t.state"),
    "subscription_difference": Compared(
        key="t.attempt_id",
        shown="t.attempt_id",
        same="t.at",
        once=("t.finished_at",),
        version=_ENDED,
        state="t.state",
    ),
    "subscription_item": Compared(once=("t.taken_back_at",)),
    "subscription_proration": Compared(key="t.subscription_id, t.change_id", shown="t.subscription_id", same="t.at"),
    "subscription_package": _MADE,
    "package_version": _MADE,
    # What is taken back is not finished any more.
    "package_move": Compared(
        once=(
            "case when t.state <> 'moving' then 1 end",
            "case when t.state in ('taking_back', 'taken_back') then 1 end",
            "case when t.state = 'taken_back' then 1 end",
        )
    ),
    # Of what came to pass in both cells both tell.
    "pingback": Compared(key="t.live, t.event, t.payment_id, t.subscription_id", same=""),
    "delivery": _MADE,
    "evidence_file": Compared(
        made="t.created_at",
        may_be="added here since, or replaced or removed there: compare the files of the dispute in both cells",
    ),
    "coupon": _MADE,
    "payment_link": Compared(grows=("extract(epoch from t.changed_at)",)),
    "merchant": Compared(once=("t.went_live_at",), grows=("t.test_generation",), live=_OF_BOTH_SIDES),
    "merchant_key": Compared(once=("t.valid_until",), live=_OF_BOTH_SIDES),
    "branding": _SET,
    "business_profile": _SET,
    "profile_change": Compared(same="t.proposed_at", once=("t.decided_at",), live=_OF_BOTH_SIDES),
    "invitation": Compared(
        same="t.email",
        once=("t.accepted_at",),
        grows=("extract(epoch from t.created_at)",),
        made="t.created_at",
        live=_OF_BOTH_SIDES,
        may_be="invited here since, or withdrawn there: the audit log there then has invitation_withdrawn",
    ),
    "membership": Compared(
        key="t.created_at",
        same="",
        shown="p.email",
        made="t.created_at",
        live=_OF_BOTH_SIDES,
        of="membership t join person p on p.id = t.person_id",
        may_be="who has joined here since, or has left the team there: the audit log there then has member_removed",
    ),
    # Which of two keys is the newer one nobody knows.
    "acquirer_account": Compared(
        key="t.name",
        shown="t.name",
        version="1",
        state="encode(t.key_print, 'hex')",
        live=_OF_BOTH_SIDES,
        may_be="added, or given another key, here since or there: paydesk acquirer verify there says which works",
    ),
    "acquirer_rule": Compared(
        made="t.created_at",
        live=_OF_BOTH_SIDES,
        may_be=(
            "added here since, or removed there: paydesk acquirer route --preview in both cells says what they come to"
        ),
    ),
    # Who suspends the copy does what is to be done with it.
    "audit_entry": Compared(
        key="t.id, t.at",
        same="t.action",
        made="t.at",
        live=_OF_BOTH_SIDES,
        of="(select * from audit_entry where action not in ('merchant_suspended', 'merchant_resumed')) t",
    ),
}
"""How the tables of a merchant's rows are compared, money first."""

_BY_PAYMENTS = "it goes with a payment, or another row that is compared"
_BY_ACQUIRERS = "an acquirer tells it the other cell, too"
_KEPT_SUM = "a sum, or a place, of other rows"
_OF_A_MOMENT = "it counts for a moment, or can be had anew"

LEFT_OUT: Final = {
    **dict.fromkeys(("checkout", "coupon_use", "hosted_page", "mail", "payment_link_sale"), _BY_PAYMENTS),
    **dict.fromkeys(("api_call", "kept_release", "pingback_attempt"), _BY_PAYMENTS),
    **dict.fromkeys(("acquirer_own_id", "balance_line", "balance_reading", "bank_payout"), _BY_ACQUIRERS),
    **dict.fromkeys(("dispute_reading", "dispute_waiting", "failed_refund_reading"), _BY_ACQUIRERS),
    **dict.fromkeys(("failed_refund_waiting", "operator_entry", "proceeds_finding"), _BY_ACQUIRERS),
    "reconciliation": _BY_ACQUIRERS,
    **dict.fromkeys(("card_expiry", "ledger_entry_before", "mail_place", "mrr_day", "mrr_movement"), _KEPT_SUM),
    **dict.fromkeys(("refund_day", "reserve_change", "reserve_due"), _KEPT_SUM),
    **dict.fromkeys(("alarm", "card_guard_minute", "card_try", "ignored_field", "item_picture"), _OF_A_MOMENT),
    **dict.fromkeys(("picture_source", "rejected_form", "shopper_code", "shopper_session"), _OF_A_MOMENT),
    **dict.fromkeys(("acquirer_fee", "card_guard", "fee_amount", "fee_plan"), "the audit log tells who set it"),
    "forgotten_attempt": "it stays here",
}
"""What is not compared, and why nobody misses it."""
