"""`paydesk chargeback`: what customers' banks took back;
in test mode also to open one and to say how it ends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, TypeVar

import typer

from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.simulator import RemoteSimulator, SimulatedAcquirer
from paydesk.commands.connecting import Deployment, command, deployment
from paydesk.commands.options import HowMany, Live
from paydesk.commands.printing import AsJson, show_facts, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.core.money import parse_typed, written
from paydesk.core.paging import Page
from paydesk.domain.chargebacks.for_api import (
    Chargeback,
    find_by_reference,
    find_chargeback,
    list_chargebacks,
    purchase_of,
    reference_of,
    shop_of_chargeback,
)
from paydesk.domain.chargebacks.giving_evidence import give_evidence
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.chargebacks.states import ChargebackState
from paydesk.domain.merchants.merchant import find_merchant, shop_of
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.domain.operations.chargebacks import list_waiting
from paydesk.domain.operations.chargebacks import reckon as reckon_chargeback
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import shop_of_payment
from paydesk.equipment import accounts_open, live_acquirer, payment_desk, test_acquirer

app = typer.Typer(help="See chargebacks and give evidence; open and close them in test mode.", no_args_is_help=True)

ChargebackId = Annotated[int, typer.Argument(metavar="ID", min=1, max=2**53 - 1, help="The chargeback's id.")]
PaymentId = Annotated[int, typer.Argument(metavar="PAYMENT_ID", min=1, max=2**53 - 1, help="The payment's id.")]
Simulator = SimulatedAcquirer | RemoteSimulator
_Answer = TypeVar("_Answer")


@app.command("list", epilog="Example: paydesk chargeback list 1 --state open --live")
@command
async def list_(
    merchant_id: Annotated[int, typer.Argument(metavar="MERCHANT_ID", min=1, help="The merchant's id.")],
    state: Annotated[ChargebackState | None, typer.Option(help="Only those in this state.")] = None,
    live: Live = False,
    last: HowMany = 50,
    as_json: AsJson = False,
) -> None:
    """List a merchant's newest chargebacks, newest first."""
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        found = await list_chargebacks(here.database, shop, state, Page(last))
    if as_json:
        show_json([asdict(one) for one in found])
        return
    show_table(
        ("id", "opened", "state", "payment", "order", "amount", "taken", "returned", "fee", "reason"),
        [
            (
                one.id,
                one.opened_at,
                one.state,
                one.payment_id,
                one.merchant_order_id,
                _money(one),
                written(one.taken, one.currency),
                written(one.returned, one.currency),
                written(one.fee, one.currency),
                one.reason,
            )
            for one in found
        ],
    )


@app.command(epilog="Example: paydesk chargeback show 41")
@command
async def show(chargeback_id: ChargebackId, as_json: AsJson = False) -> None:
    """Show a chargeback."""
    async with deployment() as here:
        shop = await shop_of_chargeback(here.database, chargeback_id)
        _print(await find_chargeback(here.database, shop, chargeback_id), as_json)


@app.command("open", epilog="Example: paydesk chargeback open 17 --reason product_not_received")
@command
async def open_(
    payment_id: PaymentId,
    reason: Annotated[str, typer.Option(help="The bank's word for it.")] = "fraudulent",
    as_json: AsJson = False,
) -> None:
    """Have the simulated bank take a test payment's money back, as a customer's bank would."""
    async with deployment() as here, _bank(here) as (desk, bank):
        shop = await shop_of_payment(here.database, payment_id)
        purchase = await purchase_of(here.database, shop, payment_id)
        if purchase.acquirer != bank.name:
            raise Conflict("only the simulated bank opens chargebacks on demand; this payment is at another acquirer")
        reference = await _asked(bank.open_dispute(purchase.key, reason))
        await read_disputes(desk, now=utc_now())
        found = await find_by_reference(here.database, shop, bank.name, reference)
    if found is None:
        raise Conflict("the bank has opened it; a worker records it in a moment: paydesk chargeback list")
    _print(found, as_json)


@app.command(epilog="Example: paydesk chargeback win 41")
@command
async def win(chargeback_id: ChargebackId, as_json: AsJson = False) -> None:
    """Have the simulated bank decide for the merchant: the money comes back."""
    await _close(chargeback_id, won=True, as_json=as_json)


@app.command(epilog="Example: paydesk chargeback lose 41")
@command
async def lose(chargeback_id: ChargebackId, as_json: AsJson = False) -> None:
    """Have the simulated bank decide for the customer: the chargeback is final."""
    await _close(chargeback_id, won=False, as_json=as_json)


@app.command(epilog='Example: paydesk chargeback evidence 41 "Delivered on 3 March, signed for by the customer"')
@command
async def evidence(
    chargeback_id: ChargebackId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The merchant's side.")],
    as_json: AsJson = False,
) -> None:
    """Record the merchant's evidence, and hand it to the bank."""
    async with deployment() as here, _bank(here, with_live=True) as (desk, _):
        shop = await shop_of_chargeback(here.database, chargeback_id)
        now = await shop_time(here.database, shop, real_now=utc_now())
        _print(await give_evidence(desk, shop, chargeback_id, text, now=now), as_json)


@app.command(epilog="Example: paydesk chargeback waiting")
@command
async def waiting(last: HowMany = 50, as_json: AsJson = False) -> None:
    """List the disputes that could not be booked, the oldest first, each with its reason;
    they are tried again.
    """
    async with deployment() as here:
        found = await list_waiting(here.database, most=last)
    if as_json:
        show_json([asdict(one) for one in found])
        return
    show_table(
        ("acquirer", "dispute", "amount", "state", "since", "tries", "why it waits"),
        [
            (
                one.acquirer,
                one.told.reference,
                f"{one.told.amount} {one.told.currency}",
                one.told.status,
                one.first_at,
                one.tries,
                one.reason,
            )
            for one in found
        ],
    )


@app.command(epilog="Example: paydesk chargeback reckon 41 9.87")
@command
async def reckon(
    chargeback_id: ChargebackId,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="What is disputed, in the payment's currency.")],
    as_json: AsJson = False,
) -> None:
    """Say what a dispute in another currency is worth in its payment's;
    the difference is booked.
    """
    async with deployment() as here:
        shop = await shop_of_chargeback(here.database, chargeback_id)
        found = await find_chargeback(here.database, shop, chargeback_id)
        worth = parse_typed(amount, found.currency)
        _print(await reckon_chargeback(here.database, shop, chargeback_id, worth, now=utc_now()), as_json)


async def _close(chargeback_id: int, *, won: bool, as_json: bool) -> None:
    async with deployment() as here, _bank(here) as (desk, bank):
        shop = await shop_of_chargeback(here.database, chargeback_id)
        acquirer, reference = await reference_of(here.database, shop, chargeback_id)
        if acquirer != bank.name:
            raise Conflict("the acquirer of this payment decides, not Paydesk")
        await _asked(bank.close_dispute(reference, won))
        await read_disputes(desk, now=utc_now())
        _print(await find_chargeback(here.database, shop, chargeback_id), as_json)


async def _asked(question: Awaitable[_Answer]) -> _Answer:
    """The bank's answer. Raises: Conflict with its reason if it refuses."""
    try:
        return await question
    except AcquirerRefused as error:
        raise Conflict(str(error)) from error


@asynccontextmanager
async def _bank(here: Deployment, *, with_live: bool = False) -> AsyncIterator[tuple[Desk, Simulator]]:
    """This process's own connection to the simulated bank, which need not take its time;
    and to the live acquirer.
    """
    settings = here.settings.model_copy(update={"simulator_latency": 0.0})
    acquirer = test_acquirer(settings)
    assert isinstance(acquirer, SimulatedAcquirer | RemoteSimulator)
    live = live_acquirer(settings) if with_live else None
    desk = payment_desk(settings, here.database, here.vault, acquirer, live)
    try:
        async with accounts_open(desk):
            yield desk, acquirer
    finally:
        for each in desk.acquirers.values():
            await each.close()


def _print(found: Chargeback, as_json: bool) -> None:
    if as_json:
        show_json(asdict(found))
        return
    show_facts(
        [
            ("chargeback", found.id),
            ("state", found.state),
            ("payment", found.payment_id),
            ("order", found.merchant_order_id),
            ("disputed", _money(found)),
            (
                "in its own currency",
                f"{written(found.disputed_amount, found.disputed_currency)} {found.disputed_currency}",
            ),
            ("taken", f"{written(found.taken, found.currency)} {found.currency}"),
            ("returned", f"{written(found.returned, found.currency)} {found.currency}"),
            ("fee", f"{written(found.fee, found.currency)} {found.currency}"),
            ("reason", found.reason),
            ("opened", found.opened_at),
            ("closed", found.closed_at),
            ("evidence", found.evidence),
        ]
    )


def _money(found: Chargeback) -> str:
    return f"{written(found.amount, found.currency)} {found.currency}"
