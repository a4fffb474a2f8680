"""A call that never had a connection has begun nothing, and says so; one that had it is unknown."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from paydesk.adapters.acquirers.hosted_pages import PageRequest
from paydesk.adapters.acquirers.interface import Acquirer, NothingBegun, OutcomeUnknown
from paydesk.adapters.acquirers.mollie import MollieAcquirer
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.reaching import NoConnection, may_be_sent, one_call
from paydesk.adapters.acquirers.simulator.remote import RemoteSimulator
from paydesk.adapters.acquirers.stripe import StripeAcquirer
from paydesk.core.clock import utc_now

OPENED: dict[str, Callable[[str], Acquirer]] = {
    "simulator": RemoteSimulator,
    "stripe": lambda base: StripeAcquirer("sk_test_none", api_base=base),
    "stripe pages": lambda base: StripeAcquirer("sk_test_none", api_base=base, hosts_pages=True),
    "mollie": lambda base: MollieAcquirer("test_none", api_base=base),
}


def purchase() -> Purchase:
    card = CardDetails("4242424242424242", 12, 2040, "Ada Lovelace", "123")
    after = utc_now() + timedelta(minutes=1)
    return Purchase("key-1", Decimal(10), "USD", card, True, after, return_url="https://pay.test/back")


def wanted() -> PageRequest:
    ends = (utc_now() + timedelta(hours=1)).replace(microsecond=0)
    return PageRequest(
        "key-1",
        Decimal(10),
        "EUR",
        order="A-1",
        shop="Shop",
        description="A book",
        email="ada@example.com",
        language="en",
        return_url="https://pay.test/back",
        expires_at=ends,
    )


async def ask(acquirer: Acquirer) -> None:
    """Ask for what a customer waits for, in the way in which this one can."""
    try:
        if acquirer.capabilities.cards:
            await acquirer.authorize(purchase())
        else:
            await acquirer.open_page(replace(wanted(), asked_at=utc_now().replace(microsecond=0)))
    finally:
        await acquirer.close()


@pytest.mark.parametrize("kind", OPENED)
async def test_a_refused_connection_has_begun_nothing(kind: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(NothingBegun):
            await ask(OPENED[kind](f"http://127.0.0.1:{closed.getsockname()[1]}"))


@pytest.mark.parametrize("kind", OPENED)
async def test_a_connection_that_ends_without_an_answer_may_have_begun_something(kind: str) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(OutcomeUnknown) as said:
            await ask(OPENED[kind](f"http://127.0.0.1:{port}"))
    assert not isinstance(said.value, NothingBegun)


async def sent_and_refused() -> None:
    async with one_call():
        may_be_sent()
        raise NoConnection("refused")


async def test_what_was_sent_before_the_connection_was_refused_may_have_begun_something() -> None:
    with pytest.raises(NoConnection):
        await sent_and_refused()
