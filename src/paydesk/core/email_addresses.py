"""E-mail addresses, by their form alone: whether somebody reads the mail, only a mail tells."""

from __future__ import annotations

import re

from email_validator import EmailNotValidError, validate_email

from paydesk.core.errors import Malformed
from paydesk.core.storable import refuse_card_number
from paydesk.core.wording import worded

LONGEST_EMAIL = 254
"""Characters (RFC 5321)."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def in_small_letters(email: str) -> str:
    """An address as databases compare it, letter by letter: of `İ` and of a last `Σ` Python alone
    makes others.
    """
    return "".join("i" if letter == "İ" else letter.lower() for letter in email)


def parse_email(text: str) -> str:
    """Check an e-mail address by its form alone; the normalised address.

    Raises: Malformed.
    """
    refuse_card_number(text, "email")
    try:
        if len(text) > LONGEST_EMAIL:
            raise EmailNotValidError("it is too long")
        return validate_email(
            text, check_deliverability=False, globally_deliverable=False, test_environment=True
        ).normalized
    except EmailNotValidError as error:
        raise Malformed(
            worded('email "%(text)s" is not an e-mail address', text=_CONTROL.sub("?", text[:80])), "email"
        ) from error
