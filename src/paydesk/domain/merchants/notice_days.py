"""How many days before a charge customers are told of it."""

from __future__ import annotations

from paydesk.core.errors import Malformed
from paydesk.core.wording import worded

MOST_NOTICE_DAYS = 90


def parse_notice_days(text: str, field: str) -> int | None:
    """Days as somebody typed them; none, if it is empty or 0.

    Raises: Malformed, naming the field.
    """
    typed = text.strip()
    if not typed:
        return None
    if not (typed.isascii() and typed.isdecimal() and len(typed) <= 3 and int(typed) <= MOST_NOTICE_DAYS):
        raise Malformed(worded("give a number of days, from 0 to %(most)s", most=MOST_NOTICE_DAYS), field)
    return int(typed) or None
