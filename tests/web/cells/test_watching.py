"""The operator's console shows all cells: each by what it says itself, the silent ones too."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import pytest
from starlette.types import Receive, Scope, Send
from tests import breaking, set_back, shopfront
from tests.web.account.conftest import Visitor, fields_of, text_of
from tests.web.cells.people import account, know
from tests.web.cells.two_cells import HOME, SECOND, Cells, silent

from paydesk.core.clock import utc_now
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.cells.directory import Cell, Entry, Kind, enter, name_of
from paydesk.domain.cells.numbers import IDS_OF_A_CELL
from paydesk.domain.merchants.merchant import shop_of
from paydesk.domain.operations.cell_figures import CellFigures, figures_of_this_cell
from paydesk.web.cells import asking
from paydesk.web.cells.asking import LARGEST_ANSWER, QUESTION, Asking, prove
from paydesk.web.cells.calling import CellAway, other_cells
from paydesk.web.cells.holding import HOLDING
from paydesk.web.cells.marks import HEADER, LASTS, Passed, mark
from paydesk.web.cells.watching import FIGURES, FRESH, Watch

CELLS, OVERVIEW, SEARCH = "/operator/cells", "/operator/overview", "/operator/search"
SAID: dict[str, Any] = {
    **dict.fromkeys(("alarms", "unknown", "unknown_for_a_day", "profiles", "disputes", "failing", "behind"), 0),
    **{"due": 0, "alive": 1, "payouts": None, "step": 530, "version": "0.1.0", "copies": []},
}

LIES: list[dict[str, Any]] = [
    {"alarms": -1},
    {"alarms": 10**30},
    {"alarms": "many"},
    {"alive": None},
    {"version": "x" * 41},
    {"copies": [{}]},
    {"copies": [{"cell": 2, "is_read": True, "bytes_behind": -5, "seconds_behind": 0}]},
]


@pytest.fixture
async def operator(cells: Cells) -> Visitor:
    """Who runs the deployment, logged in in the first cell."""
    return (await account(cells, HOME, "ops@pay.example", operator=True, second_factor=True)).visitor


async def alarmed(cells: Cells, cell: int, times: int = 1) -> None:
    """So many alarms are open in a cell."""
    alarms = [Alarm(AlarmKind.set_aside, f"payment {one}8", "no such currency") for one in range(times)]
    await raise_alarms(cells.databases[cell], alarms, now=utc_now())


def says(answer: bytes, status: int = 200) -> Any:
    """A cell that answers so."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": answer})

    return app


def cards(page: httpx.Response) -> dict[int, str]:
    """What the page says of each cell."""
    parts = text_of(page).split("Cell ")[1:]
    found = {int(part.split()[0]): part for part in parts if part.split()[0].isdigit()}
    return {number: part for number, part in found.items() if number in (HOME, SECOND)}


async def test_each_cell_is_shown_by_its_own_figures(cells: Cells, operator: Visitor) -> None:
    await alarmed(cells, SECOND, 3)
    await cells.know(HOME, SECOND)
    page = await operator.see(CELLS)
    here, there = cards(page)[HOME], cards(page)[SECOND]
    assert "This one Home" in here
    assert "Alarms 0" in here
    assert "Answers" in there
    assert "Alarms 3" in there
    assert "Merchants 1" in there
    assert "http://pay2.test" in there
    assert [one.path for one in cells.served[SECOND].arrived] == [FIGURES]
    assert 'href="/operator/cells"' in page.text
    assert page.text.count('action="/account/cells/go"') == 1


async def test_a_cell_says_what_its_own_console_shows(cells: Cells, operator: Visitor) -> None:
    await alarmed(cells, HOME, 2)
    said = await figures_of_this_cell(cells.databases[HOME], now=utc_now())
    assert (said.alarms, said.alive, said.failing) == (2, 0, 0)
    assert msgspec.json.decode(msgspec.json.encode(said), type=CellFigures) == said
    assert "Alarms 2" in text_of(await operator.see(OVERVIEW))


@pytest.mark.parametrize("how", ["hangs", "is not there"])
async def test_a_cell_that_is_dead_delays_no_page(
    cells: Cells, operator: Visitor, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PATIENCE", 0.2)
    cells.served[SECOND].instead = silent
    if how == "is not there":
        for database in cells.databases.values():
            await breaking.say(database, "cell", {"number": SECOND}, inside="http://127.0.0.1:1")
    page = await operator.see(CELLS)
    assert page.status_code == 200
    assert "Does not answer" in cards(page)[SECOND]
    assert "Asked in vain since: just now" in cards(page)[SECOND]
    assert "Answers" in cards(page)[HOME]
    assert "Cells that do not answer Cell 2" in text_of(await operator.see(OVERVIEW))


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"null",
        b"nonsense",
        b"[" * 5_000,
        b"{" + b" " * LARGEST_ANSWER + b"}",
        *(json.dumps({**SAID, **lie}).encode() for lie in LIES),
    ],
    ids=lambda answer: answer[:40].decode(),
)
async def test_a_cell_that_answers_nonsense_does_not_answer(cells: Cells, operator: Visitor, answer: bytes) -> None:
    cells.served[SECOND].instead = says(answer)
    page = await operator.see(CELLS)
    assert (page.status_code, "Does not answer" in cards(page)[SECOND]) == (200, True)


@pytest.mark.parametrize("status", [302, 404, 500, 503])
async def test_only_an_answer_that_was_found_is_one(cells: Cells, operator: Visitor, status: int) -> None:
    cells.served[SECOND].instead = says(json.dumps(SAID).encode(), status)
    assert "Does not answer" in cards(await operator.see(CELLS))[SECOND]


async def test_what_a_cell_says_is_text(cells: Cells, operator: Visitor) -> None:
    cells.served[SECOND].instead = says(json.dumps({**SAID, "version": "<script>alert(1)</script>"}).encode())
    page = await operator.see(CELLS)
    assert "&lt;script&gt;alert(1)" in page.text
    assert "<script>alert" not in page.text


async def test_another_schema_is_worth_a_look(cells: Cells, operator: Visitor) -> None:
    cells.served[SECOND].instead = says(json.dumps({**SAID, "step": 7, "alive": 0}).encode())
    page = await operator.see(CELLS)
    assert '<span class="badge tone-red">0.1.0, schema 7</span>' in page.text


async def test_the_overview_names_cells_with_alarms(cells: Cells, operator: Visitor) -> None:
    assert "in other cells" not in text_of(await operator.see(OVERVIEW))
    cells.served[SECOND].instead = says(json.dumps({**SAID, "alarms": 4}).encode())
    fresh = Visitor(await cells.open(HOME), operator.client)
    fresh.web.cookies = operator.web.cookies
    assert "Alarms in other cells 4 Cell 2" in text_of(await fresh.see(OVERVIEW))


@pytest.mark.parametrize("path", [OVERVIEW, f"{SEARCH}?q={SECOND * IDS_OF_A_CELL}"])
async def test_pages_that_are_asked_for_often_count_no_merchants(
    cells: Cells, operator: Visitor, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counts(_database: object) -> None:
        raise AssertionError("it reads a row of each merchant of all cells")

    monkeypatch.setattr("paydesk.domain.cells.listing.queries", SimpleNamespace(list_cells=counts))
    assert (await operator.see(path)).status_code == 200
    assert len(cells.served[SECOND].arrived) == 1


async def test_a_cell_is_asked_once_for_many_who_look(cells: Cells, operator: Visitor) -> None:
    await asyncio.gather(*(operator.see(path) for path in (CELLS, OVERVIEW, CELLS, OVERVIEW)))
    assert len(cells.served[SECOND].arrived) == 1


async def test_what_was_heard_is_asked_for_again_after_a_while(cells: Cells) -> None:
    async with other_cells() as others:
        watch, now = Watch(Asking(others, cells.vault)), utc_now()
        known = [Cell(SECOND, "http://pay2.test", inside(cells))]
        for later, asked in ((0, 1), (5, 1), (FRESH.seconds, 2)):
            (heard,) = await watch.look(known, own=HOME, now=now + timedelta(seconds=later), patience=5)
            assert (heard.answers, len(cells.served[SECOND].arrived)) == (True, asked)
        cells.served[SECOND].instead = says(b"", 503)
        for later in (20, 40):
            (heard,) = await watch.look(known, own=HOME, now=now + timedelta(seconds=later), patience=5)
            assert heard.silent_since == now + timedelta(seconds=20)
            assert heard.at == now + timedelta(seconds=FRESH.seconds)
        cells.served[SECOND].instead = None
        (heard,) = await watch.look(known, own=HOME, now=now + timedelta(seconds=60), patience=5)
        assert heard.answers
        await watch.look(known, own=HOME, now=now, patience=5)
        assert len(cells.served[SECOND].arrived) == 6, "a clock that was put back keeps nobody from being asked"


def inside(cells: Cells) -> str:
    """Where the second cell's web server is reached."""
    return cells.inside[SECOND]


async def ask_by_hand(cells: Cells, **changed: Any) -> httpx.Response:
    """A question to the second cell with a proof that was made for another, or none."""
    given: dict[str, Any] = {"path": FIGURES, "body": b"{}", "asking": HOME, "asked": SECOND, "now": utc_now()}
    proof = prove(changed.pop("vault", cells.vault), **{**given, **changed})
    headers = {QUESTION: proof, HEADER: mark(cells.vault, "POST", FIGURES, Passed(""), now=utc_now())}
    async with httpx.AsyncClient(base_url=inside(cells)) as web:
        return await web.post(FIGURES, content=b"{}", headers=headers)


async def test_a_cell_answers_cells_alone(cells: Cells) -> None:
    assert (await ask_by_hand(cells)).status_code == 200
    old = timedelta(seconds=LASTS + 5)
    for changed in (
        {"now": utc_now() - old},
        {"now": utc_now() + old},
        {"path": "/cells/shops"},
        {"body": b"{ }"},
        {"asked": HOME},
        {"asked": 7},
    ):
        assert (await ask_by_hand(cells, **changed)).status_code == 404, changed
    for headers in ({}, {QUESTION: ""}, {QUESTION: "1 1 2 00"}, {QUESTION: f"1 1 2 {'0' * 64}"}):
        assert (await cells.web[SECOND].post(FIGURES, json={}, headers=headers)).status_code == 404
        assert (await cells.web[SECOND].get(FIGURES, headers=headers)).status_code in (404, 405)


async def test_an_answer_of_another_shape_is_none(cells: Cells) -> None:
    async with other_cells() as others:
        cell = Cell(SECOND, "http://pay2.test", inside(cells))
        with pytest.raises(CellAway):
            await Asking(others, cells.vault).ask(cell, FIGURES, [], CellFigures, own=HOME, now=utc_now())


async def test_a_search_leads_to_the_cell_that_has_it(cells: Cells, operator: Visitor) -> None:
    await cells.know(HOME, SECOND)
    theirs = cells.merchants[SECOND]
    email = "ben@shop.example"
    for database in cells.databases.values():
        line = Entry(Kind.email, name_of(cells.vault, Kind.email, email))
        await enter(database, [line], SECOND, now=utc_now())
    for text in (str(theirs.id), f"#{theirs.id}", "Ben@shop.example", theirs.public_key):
        found = await operator.web.get(SEARCH, params={"q": text})
        assert "In other cells" in text_of(found), text
        assert fields_of(found.text, "/account/cells/go")["next"].startswith(f"{SEARCH}?q="), text
    for text in (str(cells.merchants[HOME].id), "nobody@shop.example", "Shop 1", "", str(7 * IDS_OF_A_CELL)):
        found = await operator.web.get(SEARCH, params={"q": text})
        assert "In other cells" not in text_of(found), text


async def opened(cells: Cells, cell: int, *, born_in: int) -> int:
    """A checkout in a cell with an id of another one, as who has moved brings it along."""
    number = born_in * IDS_OF_A_CELL + 77_777_778
    shop = shop_of(cells.merchants[cell], live=False)
    link = await shopfront.order(cells.databases[cell], shop)
    await breaking.say(cells.databases[cell], "checkout", {"id": link.row_id}, id=number)
    return number


async def leads_to_second(operator: Visitor, number: int) -> bool:
    """Whether a search for an id leads to the other cell."""
    found = await operator.web.get(SEARCH, params={"q": str(number)})
    return "Search in cell 2" in text_of(found)


async def test_an_id_leads_to_the_cell_that_has_it_wherever_it_was_born(cells: Cells, operator: Visitor) -> None:
    number = await opened(cells, SECOND, born_in=HOME)
    assert await leads_to_second(operator, number)
    assert not await leads_to_second(operator, number + 10)
    assert [one.path for one in cells.served[SECOND].arrived] == [HOLDING] * 2


async def test_an_id_whose_merchant_has_left_does_not_lead_to_where_it_was_born(
    cells: Cells, operator: Visitor
) -> None:
    assert not await leads_to_second(operator, SECOND * IDS_OF_A_CELL + 77_777_778)


async def test_what_is_here_is_asked_of_nobody(cells: Cells, operator: Visitor) -> None:
    number = await opened(cells, HOME, born_in=SECOND)
    assert not await leads_to_second(operator, number)
    assert cells.served[SECOND].arrived == []


@pytest.mark.parametrize("ids", [SECOND, 100])
async def test_a_cell_that_does_not_answer_may_have_what_was_born_there(
    cells: Cells, operator: Visitor, ids: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PATIENCE", 0.2)
    await enter(cells.databases[HOME], [Entry(Kind.ids, "100")], SECOND, now=utc_now())
    cells.served[SECOND].instead = silent
    assert await leads_to_second(operator, ids * IDS_OF_A_CELL + 77_777_778)
    assert not await leads_to_second(operator, 77_777_778)


async def test_who_is_no_operator_sees_no_cells(cells: Cells) -> None:
    somebody = (await account(cells, HOME, "ann@shop.example")).visitor
    assert (await somebody.see(CELLS)).status_code == 404


async def test_an_operator_walks_to_the_other_console(cells: Cells, operator: Visitor) -> None:
    await account(cells, SECOND, operator.email, operator=True, second_factor=True)
    cells.web[SECOND].cookies.clear()
    await know(cells, operator.email)
    page = await operator.see(CELLS)
    asked = fields_of(page.text, "/account/cells/go")
    assert asked["next"] == "/operator"
    going = await operator.web.post("/account/cells/go", data=asked)
    assert "http://pay2.test/account/arrive" in going.text


async def test_a_deployment_that_stands_alone_has_no_entry_for_cells(cells: Cells) -> None:
    await set_back.stands_alone(cells.databases[SECOND])
    web = await cells.open(SECOND)
    known = await account(cells, SECOND, "ops@pay.example", operator=True, second_factor=True)
    web.cookies = known.visitor.web.cookies
    overview = await web.get(OVERVIEW)
    assert (overview.status_code, CELLS in overview.text) == (200, False)
    assert "stands alone" in text_of(await web.get(CELLS))
