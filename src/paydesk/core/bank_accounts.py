"""Bank accounts by their holder and number."""

from __future__ import annotations

from dataclasses import dataclass, field

from stdnum import iban as iban_numbers
from stdnum.exceptions import ValidationError

from paydesk.core.errors import Malformed, SetupError
from paydesk.core.wording import worded


@dataclass(frozen=True, slots=True)
class BankAccount:
    """Whose account it is, and its number (IBAN, without spaces)."""

    holder: str
    iban: str = field(repr=False)


def parse_iban(text: str) -> str:
    """An IBAN without its spaces. Raises: Malformed."""
    try:
        return str(iban_numbers.validate(text))
    except ValidationError:
        raise Malformed(worded("this is no IBAN: check its letters and digits"), "iban") from None


def set_account(setting: str, holder: str, iban: str) -> BankAccount | None:
    """The account that settings of a common beginning name; None if they don't.

    Raises: SetupError, naming the setting that is wrong.
    """
    if not holder.strip() and not iban.strip():
        return None
    if not holder.strip():
        raise SetupError(f"{setting}_NAME is empty: whose account is {setting}_IBAN?")
    if not iban.strip():
        raise SetupError(f"{setting}_IBAN is empty: which account has {setting}_NAME?")
    try:
        return BankAccount(holder.strip(), parse_iban(iban))
    except Malformed as error:
        raise SetupError(f"{setting}_IBAN: {error.message}") from error
