"""Accounts at banks of their own beside the stage's: one that can't be reached, one that answers
too late and one that lies, until all are well again.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from tests import set_back
from tests.faults.customers import APPROVED, AT_THE_BANKS, SECURE, Customer, Plan
from tests.faults.settling import Hereafter, hereafter
from tests.faults.stage import HERE, ROOT, Stage, bank_open
from tests.processes import Kept, eventually, free_port

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.acquirers.routing import Rule
from paydesk.domain.operations.acquirer_accounts import NewAccount, add_account
from paydesk.domain.operations.acquirer_rules import add_rule
from paydesk.domain.operations.reconciling import reconcile

SHARES = {"dead": 25, "slow": 33, "lying": 50}
"""Per cent of the orders that the rules before leave over: a quarter of all goes to each, and the
last one to the stage's own bank, which is well.
"""
VISITS = 3
"""How often a customer comes who is told to wait, or that it did not go, before they leave."""

_STOPPED = ""


@dataclass
class BadAccounts:
    """The accounts by name, each with its bank's address, record and process."""

    stage: Stage
    seed: int
    ports: Mapping[str, int] = field(default_factory=lambda: {name: free_port() for name in SHARES})
    _banks: dict[str, Kept] = field(default_factory=dict)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    def record(self, name: str) -> Path:
        """The file of a bank's own record; that of the stage's own bank is its own."""
        return self.stage.record if name == "simulator" else self.stage.record.with_name(f"{name}.sqlite")

    async def become(self, moods: Mapping[str, str]) -> None:
        """Have the banks of some accounts stop, and start again in another mood."""
        for name, mood in moods.items():
            if name in self._banks:
                await self._banks.pop(name).stop()
            if mood == _STOPPED:
                continue
            words = [mood, self.ports[name], self.record(name), self.seed]
            command = [sys.executable, str(HERE / "bad_bank.py"), *map(str, words)]
            kept = Kept(name, command, {**self.stage.env, "PYTHONPATH": str(ROOT)}, ready_event="")
            self._banks[name] = await self._stack.enter_async_context(kept.running())
            await bank_open(self._address(name))

    async def begin(self) -> None:
        """Add the accounts, with rules by which they share the orders; all processes know them."""
        await self.become(dict.fromkeys(SHARES, "well"))
        async with hereafter(self.stage.settings) as later:
            for name in SHARES:
                typed = NewAccount(name, "simulator", address=self._address(name))
                await add_account(later.desk, COMMAND_LINE, typed, now=utc_now())
            for name, share in {**SHARES, "simulator": 100}.items():
                rule = Rule(0, name, None, "", "", "", None, None, share)
                await add_rule(later.database, COMMAND_LINE, rule, {*SHARES, "simulator"}, now=utc_now())
            await set_back.accounts_serve(later.database)
        self.stage.web.kill_all()
        await eventually(lambda: bool(self.stage.web.ready), "the web service answers again", self.stage.web.tail)

    async def spoil(self) -> None:
        """From now on one refuses connections, one is too slow, and one lies."""
        await self.become({"dead": _STOPPED, "slow": "slow", "lying": "lying"})

    async def heal(self) -> None:
        """All are well again, and know what they did."""
        await self.become(dict.fromkeys(SHARES, "well"))

    def _address(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}"

    async def close(self) -> None:
        """Their banks end."""
        await self._stack.aclose()


@asynccontextmanager
async def bad_accounts(stage: Stage, seed: int) -> AsyncIterator[BadAccounts]:
    """The accounts, which are not well yet for the length of a block."""
    accounts = BadAccounts(stage, seed)
    try:
        await accounts.begin()
        yield accounts
    finally:
        await accounts.close()


async def rush(customers: Sequence[Customer], at_once: int) -> None:
    """Have customers come, so many at once, each of them a few times at most."""
    gate = asyncio.Semaphore(at_once)

    async def come(customer: Customer) -> None:
        async with gate:
            for _ in range(VISITS):
                if await customer.visit():
                    return

    await asyncio.gather(*map(come, customers))


def plan_of(chance: random.Random) -> Plan:
    """Most customers type a card, some of them twice; some are asked by their bank, and some go on
    to the acquirer's own page.
    """
    kind = chance.choices(["card", "secure", "page"], [70, 15, 15])[0]
    clicks = 2 if chance.random() < 0.15 else 1
    if kind == "secure":
        return Plan((SECURE, APPROVED), ("approve",), clicks)
    return Plan((AT_THE_BANKS if kind == "page" else APPROVED,), clicks=clicks)


async def compared(later: Hereafter) -> None:
    """What workers do each hour: compare with the list of each account, and name what differs."""
    now = utc_now()
    for name in [*later.desk.acquirers]:
        await reconcile(later.desk, name, since=now - timedelta(days=1), now=now, settled=timedelta(0), fix=True)


@dataclass(frozen=True, slots=True)
class Named:
    """A purchase of which an operator is told that its account says other than our books."""

    order: str
    key: str
    acquirer: str
    state: str


async def named(database: Database) -> list[Named]:
    """What an operator is told so."""
    rows = await database.fetch(
        "select p.merchant_order_id as order, a.idempotency_key as key, a.acquirer, a.state"
        "  from alarm l"
        "  left join payment_attempt a on l.subject = 'purchase ' || a.idempotency_key || ' at ' || a.acquirer"
        "  left join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id"
        " where l.kind = 'not_reconciled' and l.settled_at is null"
    )
    return [Named(**row) for row in rows]


async def tried_at(database: Database) -> Counter[str]:
    """How many attempts each account got, and how they ended."""
    rows = await database.fetch("select acquirer, state from payment_attempt")
    return Counter(f"{row['acquirer']} {row['state']}" for row in rows)
