"""Which room's SQL writes which table: imports alone don't show that a room reaches into another.

What the schema's functions and triggers write is theirs, and partitions are dropped by
`database/partitions.py`: neither is counted here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "paydesk"
DOMAIN = SOURCES / "domain"

COMMENT_OR_TEXT = re.compile(r"('(?:[^']|'')*')|--[^\n]*")
WRITTEN = re.compile(
    r"(?<!\bfor )(?<!\bdo )(?<!\bno key )"
    r"\b(?:insert into|merge into|update|delete from|truncate(?: table)?)\s+(?:only\s+)?([a-z_]\w*)",
    re.IGNORECASE,
)
"""A table that is written: `for update` locks, and `on conflict do update` is its insert's."""
CREATED = re.compile(r"^(?:create (?:unlogged )?table|alter table \w+ rename to) (\w+)", re.MULTILINE)

WRITERS: dict[str, str] = {
    "account_session": "accounts moving",
    "acquirer_account": "acquirers moving sealing",  # it goes with its merchant; keys move to the newest one
    "acquirer_lost": "moving operations",  # it went with its merchant
    "acquirer_own_id": "acquirers moving",
    "acquirer_fee": "operations",
    "acquirer_count": "acquirers",
    "acquirer_rule": "acquirers",
    "acquirer_turn": "acquirers moving",
    "alarm": "alarms chargebacks moving operations",  # settled with its payment, by an operator, or as its account goes
    "api_call": "merchants privacy test_clock",  # erased with its customer, or with the test side
    "audit_entry": "accounts operations",  # told by the statement that makes a file of payouts
    "balance_closing": "ledger moving",
    "balance_line": "operations proceeds",  # compared again once a contract is set
    "balance_reading": "moving proceeds",  # who read elsewhere reads no more
    "bank_payout": "proceeds",
    "branding": "business",
    "business_profile": "business sealing",  # bank accounts move to the newest key
    # Its number is stored with a payment, and erased when a subscription ends or nobody keeps it;
    # adopted, too.
    "card": "billing operations payments privacy sealing shoppers subscriptions test_clock",
    "card_change": "billing payments privacy",  # hurried as attempts are; erased with its customer
    "card_expiry": "mail",  # begun by triggers; it goes with its subscription
    "card_guard": "business payments test_clock",  # the team sets limits, the guard acts
    "card_guard_minute": "business payments test_clock",  # the team forgets test tries
    "card_try": "business payments test_clock",  # the team forgets test tries
    "chargeback": "chargebacks mail privacy test_clock",  # marked as told with its mail
    # Links in clear are hidden; a coupon makes another one of the same order.
    "checkout": "coupons payments privacy sealing test_clock",
    "coupon": "coupons test_clock",  # goes with the test side
    "coupon_use": "test_clock",  # written by takes_coupon
    "clock_reading": "operations",
    "customer": "billing operations payments privacy test_clock",  # a forgotten purchase is adopted
    "delivery": "deliveries mail privacy test_clock",  # marked as told with its mail
    "cell": "cells",
    "deployment": "cells operations",  # which cell writes the directory
    "directory": "cells",
    "dispute_reading": "chargebacks moving",  # who read elsewhere reads no more
    "dispute_waiting": "chargebacks moving",  # where its account went an operator is told anew
    "entry_pause": "accounts",
    "evidence_file": "chargebacks privacy test_clock",  # erased with its customer, or with the test side
    "failed_refund_reading": "moving payments",  # who read elsewhere reads no more
    "failed_refund_waiting": "moving payments",  # likewise
    "fee_amount": "operations",
    "fee_plan": "merchants operations",  # an operator changes terms
    "forgotten_attempt": "moving test_clock",
    "form_count": "business merchants",  # test events are counted like calls
    "hand_over_used": "accounts",
    "history": "operations",
    "hosted_page": "mail payments privacy test_clock",  # erased with its customer, or with the test side; told by mail
    "ignored_field": "merchants test_clock",  # goes with the test side
    # Erased with its customer, or with the test side; its payment may have its old id again.
    "instrument_charge": "billing payments privacy test_clock",
    "invitation": "accounts",
    "item_picture": "payments test_clock",  # goes with the test side
    "kept_release": "billing payments shoppers",  # asked for in the statement that removes, or replaces
    "ledger_entry_before": "test_clock",
    "ledger_horizon": "ledger",
    # A posting is written by the statement that does what it is about.
    "ledger_posting": "chargebacks ledger payments test_clock",
    # Queued by the statement that does what it is about; operators send it again or set it aside.
    "mail": "accounts deliveries mail operations privacy sealing",
    "mail_day": "mail",
    "mail_place": "mail",
    "membership": "accounts moving",
    # Its team sets URLs and mails, operators suspend; a test side that starts anew is counted.
    "merchant": "business merchants operations test_clock",
    "merchant_fence": "cells",
    "merchant_key": "business merchants sealing",  # the team ends a key, sealing moves it to the newest
    # Shipping begins captures, lateness voids; operators have one looked up; mails mark it.
    "movement": "deliveries mail operations payments privacy test_clock",
    "operator_entry": "proceeds",
    "package_move": "subscriptions test_clock",  # goes with the test side
    "package_version": "payments subscriptions test_clock",  # a paid order makes use of it
    # Renewals begin one; chargebacks, settling and deliveries change it; operators adopt it.
    "payment": "billing chargebacks deliveries ledger operations payments privacy subscriptions test_clock",
    # Billing begins a renewal's, subscriptions end it; operators look it up or adopt it.
    "payment_attempt": "billing operations payments privacy subscriptions test_clock",
    "payment_link": "business test_clock",  # goes with the test side
    "payment_link_sale": "test_clock",  # written by takes_sale
    "payout": "ledger test_clock",  # goes with the test side
    "payout_file": "operations",
    "payout_file_line": "operations",
    "person": "accounts moving sealing",  # second factors move to the newest key
    "person_device": "accounts moving",
    "person_token": "accounts moving",
    "picture_source": "payments test_clock",  # goes with the test side
    # Recorded by the statement that does what it tells; a copy sends none.
    "pingback": "chargebacks operations payments pingbacks privacy subscriptions test_clock",
    "pingback_attempt": "pingbacks privacy test_clock",  # erased with its customer, or with the test side
    "proceeds_finding": "operations proceeds",  # an operator accepts one
    "profile_change": "business sealing",  # proposed bank accounts move to the newest key
    "purchase_given_back": "operations",
    "queue_count": "operations",
    "queue_depth": "operations",
    "reconciliation": "moving operations",  # who compared elsewhere compares no more
    "refund_day": "payments",
    "rejected_form": "merchants privacy test_clock",  # erased with its customer, or with the test side
    # A charge marks it as used; erased with its customer, or with the test side.
    "sales_change": "ledger moving",  # written by a trigger
    "sales_closing": "ledger",
    "sales_day": "ledger moving",
    "sales_of_all": "ledger moving",
    "sales_quarter": "ledger moving",
    "saved_instrument": "billing payments privacy shoppers test_clock",
    "share_of_work": "merchants",
    "shopper": "privacy shoppers test_clock",  # erased with its customer, or with the test side
    "shopper_code": "privacy shoppers test_clock",  # erased with its customer, or with the test side
    "shopper_count": "shoppers",
    "shopper_session": "privacy shoppers test_clock",  # erased with its customer, or with the test side
    # A payment begins it, billing charges it, an adopted renewal locks it; links are hidden.
    "subscription": "billing mail operations payments privacy sealing subscriptions test_clock",
    "mrr_day": "subscriptions test_clock",  # goes with the test side
    "reserve_change": "ledger test_clock",  # written by a trigger; it goes with the test side
    "reserve_due": "ledger test_clock",  # goes with the test side
    "subscription_difference": "billing",  # goes with its subscription; what became of it a trigger writes
    "subscription_item": "privacy subscriptions",  # goes with its subscription; erased with its customer
    "subscription_proration": "subscriptions",  # goes with its subscription
    "mrr_movement": "subscriptions",  # written by a trigger, and marked once it is folded
    # Another card ends the pause that a dunning plan began; it goes with the test side.
    "subscription_change": "billing mail subscriptions test_clock",
    "subscription_package": "payments subscriptions test_clock",  # a paid order makes use of it
    "worker_seen": "operations",
}
"""Each table that statements of the domain write, and the rooms whose statements do;
where there are several, the comment says why."""


def bare(sql: str) -> str:
    """Statements on one line, without comments and what texts say."""
    return " ".join(COMMENT_OR_TEXT.sub(lambda found: "''" if found[1] else "", sql).split())


def written_by(sql: str) -> set[str]:
    return set(WRITTEN.findall(bare(sql)))


@cache
def writers() -> dict[str, set[str]]:
    rooms = defaultdict(set)
    for path in DOMAIN.rglob("*.sql"):
        for table in written_by(path.read_text()):
            rooms[table].add(path.relative_to(DOMAIN).parts[0])
    return rooms


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("select 1 from payment for update; select 1 from card for no key\n  update skip locked", set()),
        ("insert into card as c (id) values (1) on conflict (id) do\n  update set id = 2", {"card"}),
        (
            "with a as (delete from mail returning 1) update only payment p set x = 'update card' -- update mail_day",
            {"mail", "payment"},
        ),
        ("truncate table alarm; merge into person using card on true", {"alarm", "person"}),
    ],
)
def test_a_write_is_told_from_a_lock(sql: str, tables: set[str]) -> None:
    assert written_by(sql) == tables


@pytest.mark.parametrize("table", sorted(WRITERS.keys() | writers().keys()))
def test_a_table_is_written_by_the_rooms_that_are_listed(table: str) -> None:
    rooms, listed = writers().get(table, set()), set(WRITERS.get(table, "").split())
    assert rooms == listed, (
        f"{table} is written by {sorted(rooms)}, listed are {sorted(listed)}: call the room that owns the table, "
        f"or list the writer in WRITERS with the reason"
    )


def test_what_is_listed_are_tables() -> None:
    schema = "\n".join(path.read_text() for path in (SOURCES / "database").rglob("*.sql"))
    assert WRITERS.keys() <= set(CREATED.findall(schema))
