"""Amounts as the ledger has them."""

from __future__ import annotations

from decimal import Decimal

from paydesk.web.console.visit import Visit


def exact(visit: Visit, currency: str, amount: Decimal) -> str:
    """An amount where the ledger is shown line by line, so that its parts sum up as they stand."""
    return visit.texts.apart(visit.texts.money_in_ledger(amount, currency))
