"""The terms of trade with a merchant, unless an operator agrees to others:
its fees, and how long its money is held.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from paydesk.core.money import FeePlan


@dataclass(frozen=True, slots=True)
class TradeTerms:
    """What a merchant pays, and how long its money is held: fractions, main units of a currency,
    and days.
    """

    rate: Decimal = FeePlan().rate
    fixed: Decimal = FeePlan().fixed
    reserve_rate: Decimal = FeePlan().reserve_rate
    fees_returned: bool = False
    chargeback_fee: Decimal = Decimal(15)
    settlement_days: int = 7
    reserve_days: int = 180
