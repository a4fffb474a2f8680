"""The merchant's answer to a dispute: handed to the bank once, whatever breaks over it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests import breaking, set_back
from tests.banks import answering, ending_in
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.hosted_pages import Capabilities
from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound, Unavailable
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.domain.chargebacks.for_api import find_chargeback, list_chargebacks
from paydesk.domain.chargebacks.giving_evidence import PATIENCE, find_answer, give_evidence, save_draft
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.chargebacks.states import EvidenceState
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

__all__ = ["database", "database_url"]

CHARGED_BACK = "4000000000000259"


@pytest.fixture
async def disputed(desk: Desk, shop: Shop, database: Database, buy: Callable[..., Awaitable[int]]) -> int:
    """A chargeback that was read of the bank."""
    await set_back.banks_tell_again(database)
    await buy(CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    (found,) = await list_chargebacks(database, shop, None, Page(10))
    return found.id


def at_bank(desk: Desk, **calls: Any) -> Desk:
    """The desk, whose bank answers some calls in another way."""
    return replace(desk, acquirers={**desk.acquirers, "simulator": answering(desk.acquirers["simulator"], **calls)})


async def state(desk: Desk, shop: Shop, chargeback_id: int) -> EvidenceState:
    return (await find_answer(desk, shop, chargeback_id)).evidence_state


async def test_the_banks_time_for_an_answer_is_known(desk: Desk, shop: Shop, disputed: int) -> None:
    answer = await find_answer(desk, shop, disputed)
    assert answer.respond_by is not None
    assert timedelta(days=6) < answer.respond_by - utc_now() < timedelta(days=8)


async def test_pressed_many_times_at_once_it_is_handed_over_once(desk: Desk, shop: Shop, disputed: int) -> None:
    given: list[str] = []

    async def take(_reference: str, text: str, _files: object) -> None:
        given.append(text)
        await asyncio.sleep(0)

    counted = at_bank(desk, submit_evidence=take)
    pressing = [give_evidence(counted, shop, disputed, f"text {n}", now=utc_now(), once=True) for n in range(5)]
    came_of = await asyncio.gather(*pressing, return_exceptions=True)
    assert len(given) == 1
    assert len([one for one in came_of if isinstance(one, Conflict)]) == 4
    assert (await find_chargeback(desk.database, shop, disputed)).evidence == given[0], "what the bank has is shown"
    with pytest.raises(Conflict, match="has the evidence already"):
        await give_evidence(counted, shop, disputed, "another", now=utc_now(), once=True)
    with pytest.raises(Conflict, match="has the evidence already"):
        await save_draft(desk, shop, disputed, "another")


async def test_a_draft_is_kept_until_it_is_handed_over(desk: Desk, shop: Shop, disputed: int) -> None:
    await save_draft(desk, shop, disputed, "Paid with 4242 4242 4242 4242, delivered")
    draft = (await find_answer(desk, shop, disputed)).evidence_draft
    assert draft.endswith("delivered")
    assert "4242 4242" not in draft, "no card number rests anywhere"
    assert (await find_chargeback(desk.database, shop, disputed)).evidence == ""
    refusing = at_bank(desk, submit_evidence=ending_in(AcquirerRefused("too colourful")))
    with pytest.raises(Conflict, match="too colourful"):
        await give_evidence(refusing, shop, disputed, draft, now=utc_now(), once=True)
    assert await state(desk, shop, disputed) is EvidenceState.REFUSED
    assert (await find_answer(desk, shop, disputed)).evidence_draft == draft
    await give_evidence(desk, shop, disputed, "Delivered", now=utc_now(), once=True)
    answer = await find_answer(desk, shop, disputed)
    assert (answer.evidence_state, answer.evidence_draft) == (EvidenceState.SENT, "")


@pytest.mark.parametrize("came_through", [True, False])
async def test_a_lost_answer_is_looked_for_before_anything_is_sent_again(
    desk: Desk, shop: Shop, disputed: int, came_through: bool
) -> None:
    given: list[str] = []
    honest = desk.acquirers["simulator"]

    async def lose(reference: str, text: str, files: Any) -> None:
        if came_through:
            await honest.submit_evidence(reference, text, files)
        raise OutcomeUnknown("no answer")

    async def count(reference: str, text: str, files: Any) -> None:
        given.append(text)
        await honest.submit_evidence(reference, text, files)

    with pytest.raises(Unavailable):
        await give_evidence(at_bank(desk, submit_evidence=lose), shop, disputed, "one", now=utc_now(), once=True)
    assert await state(desk, shop, disputed) is EvidenceState.UNKNOWN
    unreachable = at_bank(desk, submit_evidence=count, find_dispute=ending_in(OutcomeUnknown("away")))
    with pytest.raises(Unavailable, match="can't be asked"):
        await give_evidence(unreachable, shop, disputed, "two", now=utc_now(), once=True)
    assert given == []
    again = give_evidence(at_bank(desk, submit_evidence=count), shop, disputed, "two", now=utc_now(), once=True)
    if came_through:
        with pytest.raises(Conflict, match="came through"):
            await again
    else:
        await again
    assert given == ([] if came_through else ["two"])
    assert await state(desk, shop, disputed) is EvidenceState.SENT
    kept = (await find_chargeback(desk.database, shop, disputed)).evidence
    assert kept == ("one" if came_through else "two")


async def test_what_a_dead_process_had_in_hand_is_unknown_after_a_while(desk: Desk, shop: Shop, disputed: int) -> None:
    dying = at_bank(desk, submit_evidence=ending_in(KeyboardInterrupt()))  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        await give_evidence(dying, shop, disputed, "one", now=utc_now(), once=True)
    with pytest.raises(Conflict, match="being handed to the bank just now"):
        await give_evidence(desk, shop, disputed, "one", now=utc_now(), once=True)
    await breaking.say(
        desk.database, "chargeback", {"id": disputed}, evidence_tried_at=utc_now() - PATIENCE - timedelta(seconds=1)
    )
    assert (await find_answer(desk, shop, disputed)).is_unknown(PATIENCE)
    await give_evidence(desk, shop, disputed, "one", now=utc_now(), once=True)
    assert await state(desk, shop, disputed) is EvidenceState.SENT


async def test_reading_the_bank_settles_what_is_unknown(desk: Desk, shop: Shop, disputed: int) -> None:
    honest = desk.acquirers["simulator"]

    async def lose(reference: str, text: str, files: Any) -> None:
        await honest.submit_evidence(reference, text, files)
        raise OutcomeUnknown("no answer")

    with pytest.raises(Unavailable):
        await give_evidence(at_bank(desk, submit_evidence=lose), shop, disputed, "one", now=utc_now(), once=True)
    await read_disputes(desk, now=utc_now() + timedelta(days=2))
    assert await state(desk, shop, disputed) is EvidenceState.SENT


async def test_after_the_deadline_nothing_is_sent(desk: Desk, shop: Shop, disputed: int) -> None:
    await breaking.say(desk.database, "chargeback", {"id": disputed}, respond_by=utc_now() - timedelta(seconds=1))
    never = at_bank(desk, submit_evidence=ending_in(AssertionError("asked")))
    for once in (True, False):
        with pytest.raises(Conflict, match=r"until .* UTC; it comes too late"):
            await give_evidence(never, shop, disputed, "late", now=utc_now(), once=once)
    with pytest.raises(Conflict, match="too late"):
        await save_draft(desk, shop, disputed, "late")
    assert (await find_chargeback(desk.database, shop, disputed)).evidence == ""


async def test_where_no_evidence_is_taken_from_here_nothing_is_written(desk: Desk, shop: Shop, disputed: int) -> None:
    bank = answering(desk.acquirers["simulator"], submit_evidence=ending_in(AssertionError("asked")))
    bank.capabilities = Capabilities(answered_at="it takes a merchant's side in its dashboard only")
    elsewhere = replace(desk, acquirers={**desk.acquirers, "simulator": bank})
    with pytest.raises(Conflict, match="in its dashboard only"):
        await give_evidence(elsewhere, shop, disputed, "one", now=utc_now())
    assert await state(desk, shop, disputed) is EvidenceState.NONE


async def test_another_merchants_dispute_is_not_found(desk: Desk, shop: Shop, other_shop: Shop, disputed: int) -> None:
    for asked in (save_draft(desk, other_shop, disputed, "mine"), find_answer(desk, other_shop, disputed)):
        with pytest.raises(NotFound):
            await asked
