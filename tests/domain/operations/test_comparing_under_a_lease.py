"""One worker at a time compares an acquirer's list: whoever was too slow, and was taken over,
writes nothing more, here or at the bank. Of a worker and an operator, who began later is believed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests import breaking
from tests.banks import answering, ending_in
from tests.domain.operations.books import FOUR, TEN, Books
from tests.shopfront import GOOD, go_on
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.hosted_pages import Page
from paydesk.adapters.acquirers.interface import NoSuchPage, OutcomeUnknown
from paydesk.adapters.acquirers.listing import PurchasePage
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.operations import adopting, catching_up, reading_lists, reconciling
from paydesk.domain.operations.giving_back import give_back
from paydesk.domain.operations.reconciling import reconcile
from paydesk.domain.payments.idempotency_keys import pads_of
from paydesk.domain.payments.results import Paid

__all__ = ["database", "database_url"]

Meanwhile = Callable[[], Awaitable[None]]
SOME = timedelta(minutes=5)
MASTERCARD = "5555555555554444"

POINTS: list[tuple[ModuleType | None, str]] = [
    (reconciling, "learn"),
    (None, "undo"),
    (None, "list_pages"),
    (None, "end_page"),
    (None, "list_purchases"),
    (None, "list_refunds"),
    (adopting, "_taken"),
    (catching_up, "record_refund"),
    (reading_lists, "those_accepted"),
    (reconciling, "give_back"),
    (None, "look_back"),
]
"""Where a worker may hang, in the order in which it comes there; without a module it is a call
of the bank's."""


clocks = pytest.mark.parametrize("ahead", [timedelta(0), timedelta(hours=1)], ids=["same clocks", "clock ahead"])
"""Whether the machine of who began first has the same clock as the other one's."""


@pytest.fixture
async def torn(books: Books, monkeypatch: pytest.MonkeyPatch) -> Books:
    """Books that differ from the bank's in all that a comparison mends, gives back or tells."""
    database, shop = books.database, books.shop
    monkeypatch.setattr(reconciling, "SETTLED", timedelta(seconds=-1))
    await breaking.never_reconciled(database)
    await breaking.nothing_given_back(database)
    for name in ("mug", "twice"):
        await books.sell(name)
    begun = (await (await books.another("begun")).attempt())["idempotency_key"]
    await go_on(books.desk, await books.order("on a page"))
    await books.forget()
    await breaking.forget(database, shop.merchant_id, "hosted_page")
    deaf = books.at(answering(books.desk.acquirers["simulator"], undo=ending_in(OutcomeUnknown("no answer"))))
    with pytest.raises(Unavailable):
        await give_back(deaf.desk, "simulator", begun, actor=COMMAND_LINE, now=utc_now())
    elsewhere = replace(books, desk=replace(books.desk, pads=pads_of(b"another secret")))
    assert await elsewhere.pay(await books.order("twice"), MASTERCARD) == Paid()
    given, fine, odd = [await books.another(name) for name in ("given", "fine", "odd")]
    books.bank.refund(f"there {given.payment_id}", (await given.attempt())["acquirer_reference"], FOUR, "USD")
    await odd.say(refunded=1)
    about = f"purchase {(await fine.attempt())['idempotency_key']} at simulator"
    told = Alarm(AlarmKind.not_reconciled, about, "it differed before")
    await raise_alarms(database, [told], now=utc_now() - SOME)
    return replace(odd, desk=replace(books.desk, gives_back_paid_twice=True))


async def compare(books: Books, *, ahead: timedelta = timedelta(0)) -> None:
    """A worker compares, if it is time, whose machine's clock may be ahead."""
    await reconciling._reconcile_when_due(books.desk, "simulator", now=utc_now() + ahead)


async def leased(books: Books, until: datetime) -> None:
    await breaking.say(books.database, "reconciliation", {"acquirer": "simulator"}, leased_until=until)


async def all_of(books: Books) -> dict[str, Any]:
    """All that a comparison may have written, and done at the bank."""
    names = ("alarm", "reconciliation", "purchase_given_back", "payment_id_seq", "movement_id_seq")
    rows = {name: [dict(row) for row in await books.database.fetch(f"select * from {name}")] for name in names}
    return {**rows, **await books.written(), "bank": list(books.bank.record.operations())}


def hanging(
    books: Books, monkeypatch: pytest.MonkeyPatch, at: tuple[ModuleType | None, str], meanwhile: Meanwhile
) -> Books:
    """The books of a worker who hangs once at a point, while something comes to pass:
    before what is ours, and after what the bank does.
    """
    module, name = at
    bank = books.desk.acquirers["simulator"]
    honest, begun = getattr(module or bank, name), list[str]()

    async def late(*given: Any, **named: Any) -> Any:
        is_first = not begun
        begun.append(name)
        if is_first and module is not None:
            await meanwhile()
        answer = await honest(*given, **named)
        if is_first and module is None:
            await meanwhile()
        return answer

    if module is None:
        return books.at(answering(bank, **{name: late}))
    monkeypatch.setattr(module, name, late)
    return books


async def is_listed(books: Books) -> bool:
    """Whether the operator's list has the payment."""
    return f"purchase {(await books.attempt())['idempotency_key']} at simulator" in await books.listed()


async def mended(books: Books) -> None:
    """Each thing that differed is mended, given back or told, once."""
    await books.say(refunded=0)
    rows = await books.written()
    states = {row["merchant_order_id"]: row["state"] for row in rows["payments"]}
    assert (states["mug"], states["given"], "begun" in states) == ("captured", "partially_refunded", False)
    assert len(rows["told"]) == len({tuple(one) for one in rows["told"]})
    back = await books.database.fetch("select state from purchase_given_back")
    assert [row["state"] for row in back] == ["done", "done"]
    assert sorted(books.taken()) == sorted([(TEN, 0)] * 5 + [(TEN, FOUR)])
    ended = [one for one in books.bank.record.operations() if one.kind is Kind.PAGE]
    assert books.bank.pages.pay(ended[-1].reference, "card", GOOD).state == "ended"  # type: ignore[arg-type,union-attr]
    assert await books.problems() == []


@pytest.mark.parametrize("at", POINTS, ids=[name for _, name in POINTS])
@pytest.mark.parametrize("finishes", [False, True], ids=["has begun", "has ended"])
async def test_whoever_was_taken_over_writes_nothing_more_and_says_so(
    torn: Books, monkeypatch: pytest.MonkeyPatch, at: tuple[ModuleType | None, str], finishes: bool
) -> None:
    then = list[dict[str, Any]]()

    async def taken_over() -> None:
        await leased(torn, utc_now() - SOME)
        if finishes:
            await compare(torn)
        else:
            await leased(torn, utc_now() + SOME)
        then.append(await all_of(torn))

    with capture_logs() as logs:
        await compare(hanging(torn, monkeypatch, at, taken_over))
    assert [await all_of(torn)] == then
    said = [one["why"] for one in logs if one["event"] == "a comparison with an acquirer's list was too slow"]
    assert said == ["simulator is read by another worker, or another cell, by now"]
    assert [one["event"] for one in logs if "exc_info" in one] == [], "it says so of no purchase"
    if not finishes:
        await leased(torn, utc_now() - SOME)
        await compare(torn)
    await mended(torn)


async def test_whoever_dies_between_two_pages_is_taken_over_after_their_lease(torn: Books) -> None:
    honest, reached = torn.desk.acquirers["simulator"], asyncio.Event()

    async def list_purchases(since: datetime, after: str) -> PurchasePage:
        if after:
            reached.set()
            await asyncio.Event().wait()
        return replace(await honest.list_purchases(since, ""), next="middle")

    dying = asyncio.ensure_future(compare(torn.at(answering(honest, list_purchases=list_purchases))))
    await asyncio.wait_for(reached.wait(), 30)
    before = await all_of(torn)
    await compare(torn)
    assert await all_of(torn) == before, "its lease is not over"
    await leased(torn, utc_now() - SOME)
    await compare(torn)
    await mended(torn)
    after = await all_of(torn)
    dying.cancel()
    await asyncio.wait([dying])
    assert await all_of(torn) == after


async def test_however_many_pages_are_asked_for_nobody_takes_it_over_amid_them(torn: Books) -> None:
    """Each takes as long as the bank lets it; all together may take far longer than a lease."""
    about = [f"page gone-{number} at simulator" for number in range(3)]
    told = [Alarm(AlarmKind.not_reconciled, one, "it can be paid still") for one in about]
    await raise_alarms(torn.database, told, now=utc_now() - SOME)
    until = list[datetime]()

    async def find_page(key: str, reference: str) -> Page:
        until.append(await torn.database.fetchval("select leased_until from reconciliation"))
        raise NoSuchPage

    await compare(torn.at(answering(torn.desk.acquirers["simulator"], find_page=find_page)))
    assert len(set(until)) == len(about), "it is leased anew after each"
    assert not set(about) & set(await torn.listed())
    await mended(torn)


async def test_workers_and_operators_at_once_mend_and_tell_each_thing_once(torn: Books) -> None:
    asked: dict[str, Any] = {"since": utc_now() - timedelta(hours=1), "now": utc_now(), "fix": True}
    operators = [reconcile(torn.desk, "simulator", **asked) for _ in range(2)]
    found = await asyncio.gather(compare(torn), compare(torn), *operators)
    assert sum(len(one.adopted) for one in found if one is not None) <= 3, "two payments, and what was given there"
    await compare(torn)
    assert await is_listed(torn)
    await mended(torn)


@clocks
@pytest.mark.parametrize("later", ["worker", "operator"])
async def test_what_differed_before_is_not_told_over_what_agrees_since(
    torn: Books, monkeypatch: pytest.MonkeyPatch, later: str, ahead: timedelta
) -> None:
    """The older comparison has found it, hangs, and ends last."""
    await compare(torn)
    assert await is_listed(torn)
    await breaking.say(torn.database, "reconciliation", {}, ended_at=utc_now() - timedelta(days=1))
    older, newer = (operator, compare) if later == "worker" else (compare, operator)

    async def since_mended() -> None:
        await torn.say(refunded=0)
        await newer(torn)
        assert not await is_listed(torn)

    await older(hanging(torn, monkeypatch, (reading_lists, "those_accepted"), since_mended), ahead=ahead)
    assert not await is_listed(torn)
    assert await torn.database.fetchval("select differences from reconciliation") == 0


async def operator(books: Books, *, ahead: timedelta = timedelta(0)) -> None:
    """An operator compares, whose machine's clock may be ahead."""
    now = utc_now() + ahead
    await reconcile(books.desk, "simulator", since=now - timedelta(days=3), now=now, fix=True)


@clocks
@pytest.mark.parametrize("later", ["worker", "operator"])
async def test_what_agreed_before_is_not_settled_over_what_differs_since(
    torn: Books, monkeypatch: pytest.MonkeyPatch, later: str, ahead: timedelta
) -> None:
    await compare(torn)
    await torn.say(refunded=0)
    await breaking.say(torn.database, "reconciliation", {}, ended_at=utc_now() - timedelta(days=1))
    older, newer = (operator, compare) if later == "worker" else (compare, operator)
    honest = reading_lists.ListReading._settle

    async def late(reading: Any, agreeing: Any) -> None:
        with monkeypatch.context() as once:
            once.setattr(reading_lists.ListReading, "_settle", honest)
            await torn.say(refunded=1)
            await newer(torn)
        monkeypatch.setattr(reading_lists.ListReading, "_settle", honest)
        await honest(reading, agreeing)

    monkeypatch.setattr(reading_lists.ListReading, "_settle", late)
    await older(torn, ahead=ahead)
    assert await is_listed(torn)
    if later == "worker":
        assert await torn.database.fetchval("select differences from reconciliation") == 1
