"""Who a shop is, as its customers read it below pages and mails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Imprint:
    """What an operator has accepted of a shop's profile: texts, empty where it says nothing;
    before that all are.
    """

    legal_name: str = ""
    support_email: str = ""
    support_phone: str = ""
    terms_url: str = ""
    privacy_url: str = ""


NO_IMPRINT = Imprint()


def imprint_of(told: Sequence[str] | None) -> Imprint:
    """The imprint that the database tells, in the order of `shop_imprint`."""
    return Imprint(*told) if told else NO_IMPRINT
