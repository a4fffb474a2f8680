"""Two cells over one account, each of which reads all that its lists have, and asks the other one
for what it does not know: refunds that failed, and disputes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar

import pytest
from tests.banks import answering
from tests.breaking import say
from tests.domain.moving.play import Cell, Killed, Play, going, killing
from tests.proving import check
from tests.till import Till

from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, DisputeStatus, FailedRefund, FailedRefundPage
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.acquirers.other_cells import Elsewhere, Heard, Known
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.chargebacks import waiting_disputes
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step
from paydesk.domain.payments import waiting_refunds
from paydesk.domain.payments.failed_refunds import read_failed_refunds

SOON, WHY = timedelta(minutes=1), "lost_or_stolen_card"

Listed = Sequence[Any] | Exception
"""What an account's list has, or what happens to whoever reads it."""


@dataclass
class Both(ABC):
    """The two cells; `silent` if the other one does not answer, `older` if it runs a release that
    does not know the question, and `meanwhile` is done once it has answered.
    """

    play: Play
    silent: bool = False
    older: bool = False
    asked: list[Sequence[str]] = field(default_factory=list)
    meanwhile: Callable[[], Awaitable[object]] | None = None

    alarm: ClassVar[AlarmKind]
    waits_in: ClassVar[str]
    reads_by: ClassVar[str]

    @abstractmethod
    async def comes(self) -> str:
        """Something comes back of a sale of the merchant's, whose name this is."""

    @abstractmethod
    def named(self, name: str, key: str = "") -> Any:
        """One that no cell knows."""

    @abstractmethod
    def telling(self, cell: Cell, *told: Any, after_all: Listed = ()) -> Cell:
        """A cell whose account's list has these, and then what comes after all of them."""

    @abstractmethod
    def subject(self, name: str) -> str:
        """What an alarm calls one."""

    @abstractmethod
    async def booked(self) -> list[int]:
        """How many are booked in each cell."""

    @abstractmethod
    async def read_by(self, cell: Cell, later: timedelta, ask: Elsewhere[Any]) -> int:
        """A worker of a cell reads, and asks so."""

    @abstractmethod
    async def known(self, database: Database, asked: Sequence[Any]) -> list[Known]:
        """What a cell says of what it is asked for."""

    @abstractmethod
    def key(self, asked: Any) -> str:
        """The key that was asked for."""

    async def read(self, cell: Cell, later: timedelta = timedelta(0)) -> int:
        """A worker of a cell reads."""
        other = self.play.there if cell is self.play.here else self.play.here

        async def ask(asked: Sequence[Any]) -> Heard:
            self.asked.append([self.key(one) for one in asked])
            known = tuple(await self.known(other.database, asked))
            if self.meanwhile is not None:
                await self.meanwhile()
            if self.silent or self.older:
                return Heard(silent=(7,) if self.silent else (), older=(7,) if self.older else ())
            return Heard(known)

        return await self.read_by(cell, later, ask)

    async def told(self, cell: Cell) -> list[tuple[str, str]]:
        """The kinds and subjects of the operator's open alarms in a cell."""
        rows = await cell.database.fetch("select kind, subject from alarm where settled_at is null order by subject")
        return [tuple(row) for row in rows]

    async def told_of(self, cell: Cell) -> str:
        """Why an operator of a cell is told of the only one."""
        (why,) = await cell.database.fetch("select reason from alarm where settled_at is null")
        return str(why["reason"])

    async def waiting(self, cell: Cell) -> list[Any]:
        """What waits in a cell, or is over there."""
        asked = f"select acquirer_reference, next_at, tries, alarmed_at, stands from {self.waits_in} order by 1"
        return [dict(row) for row in await cell.database.fetch(asked)]

    async def stand(self, cell: Cell) -> list[str | None]:
        """How they stand."""
        return [one["stands"] for one in await self.waiting(cell)]

    async def from_the_start(self, cell: Cell) -> None:
        """The account's list is read from its start."""
        await say(cell.database, self.reads_by, {}, place="")

    async def on_the_way(self, step: Step) -> Play:
        """Something came back, of which the other cell has read, and its merchant's move died after
        a step.
        """
        await self.comes()
        await self.read(self.play.there)
        with pytest.raises(Killed):
            await move_merchant(going(self.play), passed=killing(step))
        return self.play

    async def differences(self, cell: Cell) -> list[Any]:
        """What `paydesk check` finds in a cell, beside the bank's record."""
        found = await check(cell.database, now=utc_now() + timedelta(hours=1), record=self.play.bank.record)
        return [(one.rule.statement, one.differences) for one in found if one.found]


class BothRefunds(Both):
    """Of refunds that failed."""

    alarm = AlarmKind.refund_unknown
    waits_in, reads_by = "failed_refund_waiting", "failed_refund_reading"

    async def comes(self) -> str:
        till = Till(self.play.here.desk, self.play.shop)
        await till.give_back(await till.sell("failing"), "1.00", "failing-back")
        (made,) = [row for row in await till.rows("movement") if row["request_key"] == "failing-back"]
        self.play.bank.fail_refund(made["acquirer_reference"], WHY)
        return str(made["acquirer_reference"])

    def named(self, name: str, key: str = "") -> FailedRefund:
        return FailedRefund(name, key or f"key {name}", Decimal(1), "USD", WHY, utc_now())

    def telling(self, cell: Cell, *told: FailedRefund, after_all: Listed = ()) -> Cell:
        async def page(after: str) -> FailedRefundPage:
            if not after:
                return FailedRefundPage(told, "all")
            if isinstance(after_all, Exception):
                raise after_all
            return FailedRefundPage(tuple(after_all), "all")

        bank = answering(cell.desk.acquirers["simulator"], failed_refunds=page)
        return replace(cell, desk=replace(cell.desk, acquirers={"simulator": bank}))

    def subject(self, name: str) -> str:
        return name

    async def booked(self) -> list[int]:
        many = "select count(*) from ledger_posting where kind = 'refund_failure'"
        return [await cell.database.fetchval(many) for cell in (self.play.here, self.play.there)]

    async def read_by(self, cell: Cell, later: timedelta, ask: Elsewhere[Any]) -> int:
        return await read_failed_refunds(cell.desk, now=utc_now() + later, elsewhere=ask)

    async def known(self, database: Database, asked: Sequence[str]) -> list[Known]:
        return await waiting_refunds.known_here(database, asked)

    def key(self, asked: str) -> str:
        return asked


class BothDisputes(Both):
    """Of disputes."""

    alarm = AlarmKind.dispute_waits
    waits_in, reads_by = "dispute_waiting", "dispute_reading"

    async def comes(self) -> str:
        till = Till(self.play.here.desk, self.play.shop)
        sold = await till.sell("disputed")
        (made,) = [row for row in await till.rows("payment_attempt") if row["payment_id"] == sold]
        return self.play.bank.open_dispute(made["idempotency_key"], "fraudulent")

    def named(self, name: str, key: str = "") -> Dispute:
        return Dispute(name, key or f"key {name}", Decimal(1), "USD", "fraudulent", DisputeStatus.OPEN, utc_now())

    def telling(self, cell: Cell, *told: Dispute, after_all: Listed = ()) -> Cell:
        async def page(after: str) -> DisputePage:
            if not after:
                return DisputePage(told, "all")
            if isinstance(after_all, Exception):
                raise after_all
            return DisputePage(tuple(after_all), "all")

        bank = answering(cell.desk.acquirers["simulator"], disputes=page)
        return replace(cell, desk=replace(cell.desk, acquirers={"simulator": bank}))

    def subject(self, name: str) -> str:
        return f"dispute {name} at simulator"

    async def booked(self) -> list[int]:
        many = "select count(*) from ledger_posting where kind = 'chargeback'"
        return [await cell.database.fetchval(many) for cell in (self.play.here, self.play.there)]

    async def read_by(self, cell: Cell, later: timedelta, ask: Elsewhere[Any]) -> int:
        return await read_disputes(cell.desk, now=utc_now() + later, elsewhere=ask)

    async def known(self, database: Database, asked: Sequence[Dispute]) -> list[Known]:
        return await waiting_disputes.known_here(database, asked)

    def key(self, asked: Dispute) -> str:
        return asked.of_key
