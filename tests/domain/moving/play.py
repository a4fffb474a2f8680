"""Two cells over one bank's record, a merchant that goes from the one to the other, and one that
stays.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from pydantic import SecretStr
from tests import shopfront
from tests.breaking import say
from tests.conftest import migrated_database
from tests.proving import check
from tests.set_back import clock_runs_ahead, member, somebody
from tests.till import Till

from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.accounts import second_factor
from paydesk.domain.cells.fencing import find_fence
from paydesk.domain.cells.numbers import begin_cell
from paydesk.domain.merchants.merchant import Merchant, create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.moving.copying import Side
from paydesk.domain.moving.steps import Move
from paydesk.domain.moving.tables import THEIRS, owner_column
from paydesk.domain.payments.desk import Desk
from paydesk.equipment import payment_desk
from paydesk.settings import Settings

HERE, THERE = 1, 2
SEALED = {"card", "merchant_key", "mail", "business_profile", "profile_change"}
"""The tables whose rows differ by what they are sealed under."""


class Killed(BaseException):
    """What ends a process at once."""


@dataclass(frozen=True)
class Cell:
    """A cell of a test: its database, vault and desk, all over one bank's record."""

    database: Database
    vault: Vault
    desk: Desk
    settings: Settings

    @property
    def side(self) -> Side:
        return Side(self.database, self.vault)


@dataclass(frozen=True)
class Play:
    """Two cells, a merchant that goes from the one to the other, and one that stays."""

    here: Cell
    there: Cell
    merchant: Merchant
    beside: Shop
    bank: Bank

    @property
    def shop(self) -> Shop:
        return shop_of(self.merchant, live=False)

    @property
    def move(self) -> Move:
        return Move(self.here.side, self.there.side, None, self.merchant.id, THERE, same_simulator=True)

    async def is_open(self, cell: Cell) -> bool:
        """Whether the merchant is there, and somebody may write."""
        seen = await cell.database.fetchval("select count(*) from merchant where id = $1", self.merchant.id)
        return bool(seen) and await find_fence(cell.database, self.merchant.id) is None

    async def rows(self, cell: Cell, merchant_id: int) -> dict[str, str]:
        """What is there of a merchant, table by table, once all is written down."""
        await cell.desk.finish()
        asked = "select coalesce(jsonb_agg(to_jsonb(t) order by to_jsonb(t)::text), '[]')::text from {} t where {} = $1"
        return {
            table: await cell.database.fetchval(asked.format(table, owner_column(table)), merchant_id)
            for table in THEIRS
        }


@asynccontextmanager
async def played(
    server_url: str, usual_settings: Settings, tmp_path: Path, *, elsewhere: Mapping[int, str] = {}
) -> AsyncIterator[Play]:
    """Both cells with their merchants, who have sold a little of everything; `elsewhere` are empty
    databases on other servers.
    """
    (tmp_path / "bank").mkdir()
    secret = generate_secret()
    async with AsyncExitStack() as stack:
        bank = Bank(Record(tmp_path / "bank" / "record.sqlite"))
        stack.callback(bank.record.close)
        cells = []
        for number in (HERE, THERE):
            url = elsewhere.get(number, "")
            url = url or await stack.enter_async_context(migrated_database(server_url, cell=number))
            pool = await stack.enter_async_context(connected(url))
            await migrate(pool)
            await begin_cell(pool, number)
            keys = generate_key_setting()
            vault = Vault.from_settings(vault_keys=keys, secret_key=secret)
            own = {"vault_keys": SecretStr(keys), "secret_key": SecretStr(secret)}
            settings = usual_settings.model_copy(update={"data_dir": tmp_path, "database_url": url, **own})
            desk = payment_desk(settings, pool, vault, SimulatedAcquirer(bank, base_url=settings.address))
            cells.append(Cell(pool, vault, desk, settings))
        here, there = cells
        merchant, beside = [
            await create_merchant(here.database, here.vault, name=name, email="o@shop.example", now=utc_now())
            for name in ("Moving", "Beside")
        ]
        made = Play(here, there, merchant, shop_of(beside, live=False), bank)
        await trade(made, made.shop)
        await trade(made, made.beside)
        yield made


async def trade(play: Play, shop: Shop) -> None:
    """A little of everything at a shop."""
    desk, database = play.here.desk, play.here.database
    till = Till(desk, shop)
    sold = await till.sell("A-1")
    await till.sell("A-2", amount="7.50")
    await till.buy("A-3", shopfront.DECLINED)
    await till.give_back(sold, "2.50", "back-1")
    await till.subscribe()
    shopper = await shopfront.become_known(desk, shop)
    await shopfront.save_card(desk, play.bank, shopper)
    await shopfront.offer_link(database, shop)
    await clock_runs_ahead(database, shop.merchant_id, timedelta(hours=1))


def going(play: Play) -> Move:
    """The merchant goes, and the directory knows."""
    return replace(play.move, home=play.here.database)


def back(play: Play) -> Move:
    """The merchant comes back."""
    home = play.here.database
    return Move(play.there.side, play.here.side, home, play.merchant.id, HERE, same_simulator=True)


async def enlist(cell: Cell, merchant_id: int, email: str) -> int:
    """Somebody with a second factor belongs to a merchant's team."""
    made = await somebody(cell.database, email)
    sealed = cell.vault.seal(b"totp", purpose=second_factor.PURPOSE, merchant_id=0, row_id=made)
    known = {"password_hash": "hash", "totp_sealed": sealed.blob, "vault_key_id": sealed.key_id}
    await say(cell.database, "person", {"id": made}, **known)
    if merchant_id:
        await member(cell.database, merchant_id, made)
    return made


def killing(step: StrEnum) -> Callable[[StrEnum], None]:
    """What ends a move, or the removal of a copy, at a step."""

    def passed(done: StrEnum) -> None:
        if done is step:
            raise Killed

    return passed


async def clean(cell: Cell) -> list[str]:
    """What `paydesk check` finds in a cell."""
    found = await check(cell.database, now=utc_now() + timedelta(hours=1), record=None)
    return [f"{one.rule}: {one.differences}" for one in found if one.found]
