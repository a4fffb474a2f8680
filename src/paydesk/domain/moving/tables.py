"""What of a database is a merchant's, and goes with them to another cell: each table is of one
class, or a test fails.
"""

from __future__ import annotations

from typing import Final

THEIRS: Final = (
    *("alarm", "api_call", "audit_entry", "branding", "business_profile", "card", "card_change", "card_expiry"),
    *("card_guard", "card_guard_minute", "card_try", "chargeback", "checkout", "coupon", "coupon_use", "customer"),
    *("delivery", "evidence_file", "fee_amount", "fee_plan", "forgotten_attempt", "hosted_page", "ignored_field"),
    *("instrument_charge", "invitation", "item_picture", "kept_release", "ledger_entry_before", "ledger_posting"),
    *("mail", "mail_place"),
    *("merchant", "merchant_key", "movement", "mrr_day", "mrr_movement", "package_move", "package_version"),
    *("payment", "payment_attempt", "payment_link", "payment_link_sale", "payout", "picture_source", "pingback"),
    *("pingback_attempt", "profile_change", "refund_day", "rejected_form", "reserve_change", "reserve_due"),
    *("saved_instrument", "shopper", "shopper_code", "shopper_session", "subscription", "subscription_change"),
    *("subscription_difference", "subscription_item", "subscription_package", "subscription_proration"),
)
"""Rows that go as they are: those with the merchant's id, `merchant` its own."""

OF_ACCOUNTS: Final = {
    "acquirer_fee": "acquirer",
    "acquirer_own_id": "account",
    "balance_line": "acquirer",
    "balance_reading": "acquirer",
    "bank_payout": "acquirer",
    "dispute_reading": "acquirer",
    "dispute_waiting": "acquirer",
    "failed_refund_reading": "acquirer",
    "failed_refund_waiting": "acquirer",
    "operator_entry": "acquirer",
    "proceeds_finding": "acquirer",
    "purchase_given_back": "acquirer",
    "reconciliation": "acquirer",
    "acquirer_rule": "for_merchant_id",
}
"""What goes of accounts at acquirers that serve a merchant alone, and by which column: rules for
the merchant, and what was read of its accounts. All else in these tables stays.
"""

ACCOUNTS: Final = ("acquirer_account",)
"""The accounts themselves: sealed anew, and there before all else, so that processes open them."""

COPIED: Final = (*THEIRS, *OF_ACCOUNTS)

NAMES: Final = ("merchant", "merchant_key")
"""What everybody finds a merchant by: it comes last, so that nobody finds a copy before it is the
other cell's.
"""

PEOPLE: Final = ("membership", "person")
"""Who belongs to the merchant's team goes along; who is known there by the same address is joined
to it instead.
"""

SUMS: Final = ("balance_closing", "sales_change", "sales_day", "sales_quarter")
"""Kept sums of what goes, which are made anew: they reach as far as the other cell has summed."""

COUNTS: Final = ("form_count",)
"""How much somebody asks in a minute: it stays, and by its guard every form and call is refused."""

STAYS: Final = {
    "account_session": "people log in again",
    "payout_file_line": "a file for the bank is of one cell",
    "payout_file": "a file for the bank is of one cell",
    "acquirer_count": "how an account answers, where it is asked",
    "acquirer_lost": "accounts that are not the cell's any more",
    "acquirer_turn": "how an account answers, where it is asked",
    "clock_reading": "processes of the cell",
    "currency_unit": "the same everywhere",
    "deployment": "the cell itself",
    "entry_pause": "who tries to log in here",
    "hand_over_used": "who came from other cells",
    "history": "the cell itself",
    "ledger_horizon": "how far this cell has summed",
    "mail_day": "how much a mail server was given by this cell",
    "merchant_fence": "who is on the way",
    "person_device": "people log in again",
    "person_token": "links in people's mails lead to where they were sent from",
    "queue_count": "work of the cell",
    "queue_depth": "work of the cell",
    "sales_closing": "how far this cell has summed",
    "sales_of_all": "sums of the cell",
    "schema_migration": "the schema",
    "share_of_work": "work of the cell",
    "shopper_count": "how often somebody asks here",
    "worker_seen": "processes of the cell",
}
"""What does not go, and why."""

GUARDED: Final = (*THEIRS, "membership", *COUNTS, *ACCOUNTS, *OF_ACCOUNTS, "payout_file_line")
"""What nobody writes while its merchant is fenced; of the last, nothing new."""

ELSEWHERE: Final = ("cell", "directory")
"""What home writes for all cells."""


def owner_column(table: str) -> str:
    """The column that says whose a row is, or of whose account."""
    if table in ACCOUNTS:
        return "for_merchant_id"
    return OF_ACCOUNTS.get(table) or ("id" if table == "merchant" else "merchant_id")


def is_of_an_account(table: str) -> bool:
    """Whether a table's rows name an account alone, not whose it is."""
    return OF_ACCOUNTS.get(table) not in (None, "for_merchant_id")


def theirs(table: str) -> str:
    """What is true of a merchant's rows, in SQL; $1 is the merchant, or where rows name an account
    alone, the names of the merchant's: by values that it is told the planner finds the few rows.
    """
    return f"{owner_column(table)} = any($1::text[])" if is_of_an_account(table) else f"{owner_column(table)} = $1"
