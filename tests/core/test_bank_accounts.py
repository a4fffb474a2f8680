"""Bank accounts as settings name them."""

from __future__ import annotations

import pytest

from paydesk.core.bank_accounts import BankAccount, set_account
from paydesk.core.errors import SetupError


def test_an_account_is_read_with_its_spaces() -> None:
    found = set_account("PAYDESK_PAYOUT", " Desk Ltd ", "de89 3704 0044 0532 0130 00")
    assert found == BankAccount("Desk Ltd", "DE89370400440532013000")
    assert set_account("PAYDESK_PAYOUT", "", " ") is None


@pytest.mark.parametrize(
    ("holder", "iban", "said"),
    [
        ("", "DE89370400440532013000", "PAYDESK_PAYOUT_NAME is empty"),
        ("Desk Ltd", "", "PAYDESK_PAYOUT_IBAN is empty"),
        ("Desk Ltd", "DE88370400440532013000", "PAYDESK_PAYOUT_IBAN: this is no IBAN"),
    ],
)
def test_what_is_half_set_is_said_at_the_start(holder: str, iban: str, said: str) -> None:
    with pytest.raises(SetupError, match=said):
        set_account("PAYDESK_PAYOUT", holder, iban)
