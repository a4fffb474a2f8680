"""Two cells, and a merchant that goes from the one to the other with an account at an acquirer of
its own, whose bank both can ask.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests import set_back, shopfront
from tests.breaking import say
from tests.domain.moving.play import Cell, Play
from tests.till import Till

from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer, parse_terms
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.core.clock import utc_now
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.acquirers.accounts import PURPOSE, WEBHOOK_PURPOSE, print_of
from paydesk.domain.acquirers.accounts import queries as account_queries
from paydesk.domain.acquirers.measuring import MeasuredAcquirer
from paydesk.domain.acquirers.opening import AccountToOpen, OpenAcquirers
from paydesk.domain.acquirers.routing import Rule
from paydesk.domain.chargebacks.reading_acquirers import read_disputes, watch_readings
from paydesk.domain.operations import reconciling
from paydesk.domain.operations.acquirer_accounts import NewAccount, add_account
from paydesk.domain.operations.acquirer_rules import add_rule
from paydesk.domain.payments.failed_refunds import read_failed_refunds
from paydesk.domain.proceeds.reading import read_proceeds

THEIRS = "theirs"
TERMS = parse_terms("1.5 0.25 0.10 0.15")
PATIENCE, LATER = timedelta(days=7), timedelta(minutes=10)


@dataclass
class Owning:
    """A play whose merchant has an account of its own, `THEIRS`, at a bank of its own."""

    play: Play
    banks: dict[str, Bank]

    @property
    def bank(self) -> Bank:
        return self.banks[THEIRS]

    def till(self, cell: Cell) -> Till:
        return Till(cell.desk, self.play.shop)

    async def look(self) -> None:
        """Every process of both cells looks which accounts there are."""
        for cell in (self.play.here, self.play.there):
            known = cell.desk.acquirers
            assert isinstance(known, OpenAcquirers)
            await known.look(cell.database)

    async def add(self, cell: Cell, name: str, **more: Any) -> None:
        """An account was added in a cell, long enough ago to serve."""
        typed = NewAccount(name, "simulator", address=more.pop("address", f"http://{name}.test"), **more)
        await add_account(cell.desk, COMMAND_LINE, typed, now=utc_now())
        await set_back.accounts_serve(cell.database)
        await self.look()

    async def rule(self, cell: Cell, account: str, merchant_id: int | None) -> int:
        rule = Rule(0, account, merchant_id, "", "", "", None, None, 100)
        return (await add_rule(cell.database, COMMAND_LINE, rule, known=list(cell.desk.acquirers), now=utc_now())).id

    async def read(self, cell: Cell) -> None:
        """The workers of a cell read all that acquirers say, and look how long ago they did."""
        desk, now = cell.desk, utc_now()
        await read_disputes(desk, now=now)
        await read_failed_refunds(desk, now=now)
        for name in desk.acquirers:
            await reconciling._reconcile_when_due(desk, name, now=now)
            await read_proceeds(desk, name, patience=PATIENCE, now=now + LATER, every=timedelta(0))
        await watch_readings(desk, now=now)
        await reconciling.watch(desk, now=now)

    async def key_of(self, cell: Cell, payment_id: int) -> str:
        """What a payment's purchase is called at its bank."""
        return str(
            await cell.database.fetchval(
                "select idempotency_key from payment_attempt where payment_id = $1 and state = 'approved'", payment_id
            )
        )

    async def served_by(self, cell: Cell) -> list[str]:
        """Which accounts the merchant's attempts name, oldest first."""
        rows = await cell.database.fetch(
            "select acquirer from payment_attempt where merchant_id = $1 order by id", self.play.merchant.id
        )
        return [row["acquirer"] for row in rows]

    async def of_account(self, cell: Cell, name: str = THEIRS) -> dict[str, int]:
        """How many rows a cell has of an account, by table, where there are any."""
        tables = {"acquirer_account": "name", "acquirer_own_id": "account", "acquirer_rule": "account"} | dict.fromkeys(
            (
                *("balance_line", "balance_reading", "bank_payout", "dispute_reading", "dispute_waiting"),
                *("failed_refund_reading", "failed_refund_waiting", "operator_entry", "proceeds_finding"),
                "reconciliation",
            ),
            "acquirer",
        )
        counted = {
            table: await cell.database.fetchval(f"select count(*) from {table} where {column} = $1", name)
            for table, column in tables.items()
        }
        return {table: count for table, count in counted.items() if count}


@asynccontextmanager
async def owning(play: Play, tmp_path: Path) -> AsyncIterator[Owning]:
    """The play, in which the merchant has sold a little through its own account, which a rule of
    its own names.
    """
    banks: dict[str, Bank] = {}

    class Stands(PassingAcquirer):
        """An account's bank, which stays open for the other cell."""

        def __init__(self, honest: SimulatedAcquirer, name: str) -> None:
            super().__init__(honest)
            self.name = name

        async def close(self) -> None:
            """Leave it open."""

    def with_accounts(cell: Cell) -> Cell:
        desk = cell.desk

        def open_account(account: AccountToOpen) -> MeasuredAcquirer:
            if account.name not in banks:
                banks[account.name] = Bank(Record(tmp_path / f"{account.name}.sqlite"))
                banks[account.name].balance.agree(TERMS, timedelta(days=1))
            asked = SimulatedAcquirer(banks[account.name], base_url="http://pay.test")
            return MeasuredAcquirer(Stands(asked, account.name), desk.health)

        known = OpenAcquirers(cell.vault, {"simulator": desk.acquirers["simulator"]}, open_account)
        return replace(cell, desk=replace(desk, acquirers=known))

    # Cells are deployments of their own, which the marks of purchases name.
    await say(play.there.database, "deployment", {}, tag="another")
    made = Owning(replace(play, here=with_accounts(play.here), there=with_accounts(play.there)), banks)
    try:
        await made.add(made.play.here, THEIRS, for_merchant=str(play.merchant.id))
        await made.rule(made.play.here, THEIRS, play.merchant.id)
        till = made.till(made.play.here)
        await till.sell("own-1")
        await till.sell("own-2")
        await till.subscribe(replace(shopfront.MONTHLY, name="Own club", sku_id="own-club"), order="own-club")
        yield made
    finally:
        for bank in banks.values():
            bank.record.close()


async def with_secrets(cell: Cell, merchant_id: int | None, name: str) -> int:
    """The merchant, or everybody (None), has an account that is asked with a secret key, and gives
    notice of its own.
    """
    account_id = int(await account_queries.next_id(cell.database))
    key, secrets = [
        cell.vault.seal(value, purpose=purpose, merchant_id=0, row_id=account_id)
        for value, purpose in ((b"sk_of_theirs", PURPOSE), (b"whsec_one whsec_two", WEBHOOK_PURPOSE))
    ]
    await account_queries.add_account(
        cell.database,
        id=account_id,
        name=name,
        kind="stripe",
        live=True,
        for_merchant_id=merchant_id,
        currencies=["EUR"],
        address="",
        hosts_pages=True,
        page_domain="pay.shop.example",
        key_sealed=key.blob,
        vault_key_id=key.key_id,
        key_print=print_of(cell.vault, "sk_of_theirs"),
        webhook_sealed=secrets.blob,
        webhook_key_id=secrets.key_id,
        now=utc_now(),
    )
    return account_id
