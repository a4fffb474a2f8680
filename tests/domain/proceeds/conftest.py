"""An acquirer's balance beside our books: a merchant that was paid, and a bank that charges for it
and pays out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, shopfront
from tests.till import Till

from paydesk.adapters.acquirers.balance import (
    BalanceLine,
    BankPayout,
    LineKind,
    LinePage,
    PayoutPage,
    PayoutState,
)
from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.proceeds.for_operator import list_findings
from paydesk.domain.proceeds.reading import SETTLED, read_proceeds

NEVER = timedelta(0)
PATIENCE = timedelta(days=14)
FEE = Decimal("0.39")
"""What the told bank keeps of 10.00 USD."""


@dataclass
class ToldBalance:
    """A balance of a test's own: what it tells is what the test wrote down, in pages of two.

    `breaks_after` so many pages no answer comes any more.
    """

    told: list[BalanceLine] = field(default_factory=list)
    paid_out: list[BankPayout] = field(default_factory=list)
    within: dict[str, list[BalanceLine]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    breaks_after: int | None = None

    async def lines(self, since: datetime, after: str) -> LinePage:
        return self._page([one for one in self.told if one.at >= since], after)

    async def payouts(self, since: datetime, after: str) -> PayoutPage:
        return PayoutPage(tuple(one for one in self.paid_out if one.at >= since), "")

    async def lines_of(self, payout: str, after: str) -> LinePage:
        return self._page(self.within[payout], after)

    async def with_keys(self, lines: Sequence[BalanceLine]) -> Sequence[BalanceLine]:
        return lines

    def _page(self, lines: Sequence[BalanceLine], after: str) -> LinePage:
        if self.breaks_after is not None:
            if not self.breaks_after:
                raise OutcomeUnknown("no answer")
            self.breaks_after -= 1
        begin = int(after or 0)
        following = str(begin + 2) if len(lines) > begin + 2 else ""
        return LinePage(tuple(lines[begin : begin + 2]), following)


@dataclass(frozen=True, slots=True)
class Proceeds(Till):
    """A till whose bank tells of its balance."""

    balance: ToldBalance = field(default_factory=ToldBalance)

    async def read(self, *, now: datetime | None = None, every: timedelta = NEVER) -> bool:
        """Read the balance, some minutes after all was written down."""
        at = now or utc_now() + 2 * SETTLED
        return await read_proceeds(self.desk, "simulator", patience=PATIENCE, now=at, every=every)

    async def capture(self, *, fee: Decimal = FEE, **said: Any) -> BalanceLine:
        """The line of the payment that this test is about."""
        (attempt,) = await self.rows("payment_attempt", self.payment_id)
        line = BalanceLine(
            id=f"txn_{self.payment_id}",
            kind=LineKind.CAPTURE,
            at=utc_now() - timedelta(days=2),
            amount=Decimal(10),
            fee=fee,
            currency="USD",
            type="charge",
            source=attempt["acquirer_reference"],
            purchase=attempt["acquirer_reference"],
            key=attempt["idempotency_key"],
            of_key=attempt["idempotency_key"],
            is_ours=True,
        )
        return replace(line, **said)

    def pays_out(self, *lines: BalanceLine, amount: Decimal | None = None, **said: Any) -> BankPayout:
        """Have the bank pay lines out."""
        name = f"po_{len(self.balance.paid_out) + 1}"
        whole = sum((one.net for one in lines), Decimal(0)) if amount is None else amount
        made = BankPayout(name, utc_now() - timedelta(days=1), whole, "USD", PayoutState.ARRIVED, True)
        made = replace(made, **said)
        own = BalanceLine(f"txn_{name}", LineKind.PAYOUT, made.at, -made.amount, Decimal(0), made.currency, source=name)
        self.balance.paid_out.append(made)
        self.balance.within[name] = [*lines, own]
        self.balance.told += [one for one in (*lines, own) if one not in self.balance.told]
        return made

    async def entries(self) -> dict[tuple[str, str], Decimal]:
        """What the operator's own books come to, by account and currency."""
        rows = await self.database.fetch(
            "select account, currency, sum(amount) as amount from operator_entry group by 1, 2 having sum(amount) <> 0"
        )
        return {(row["account"], row["currency"]): row["amount"] for row in rows}

    async def findings(self) -> list[tuple[str, str]]:
        """What differs, by kind, with the reason."""
        return [(str(one.kind), one.reason) for one in await list_findings(self.database)]


@pytest.fixture
async def proceeds(desk: Desk, shop: Shop, database: Database) -> Proceeds:
    """A merchant that was paid 10.00 USD, by a bank that tells what the test writes."""
    await breaking.no_proceeds(database)
    await breaking.paid_elsewhere(database)
    await breaking.no_alarms(database)
    bank, balance = PassingAcquirer(desk.acquirers["simulator"]), ToldBalance()
    bank.balance = balance
    telling = replace(desk, acquirers={"simulator": bank})
    return Proceeds(telling, shop, await shopfront.buy(telling, shop), balance)


AT = datetime(2030, 1, 1, tzinfo=UTC)
