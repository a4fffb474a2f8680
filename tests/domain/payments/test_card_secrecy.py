"""No card number and no security code rests anywhere: not in the database, the logs,
or the bank's record.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
import structlog
from tests.banks import answering
from tests.lengths import one_of

from paydesk.adapters.acquirers.interface import Outcome
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import TEST_CARDS, Bank
from paydesk.database.embedded import binary
from paydesk.database.pool import Database, connected
from paydesk.logs import set_up_logs
from paydesk.settings import Settings

OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]
SignedForm = Callable[..., dict[str, Any]]

CVCS = ("7391", "8467", "9543", "6713", "5279", "4831", "3971", "2671", "1937")
"""Four digits each, all cards being asked for with one of them in turn;
no amount of this test looks like it."""
ROWS = 300
"""More rows than this test writes into any table."""
NUMBERS = [card.number for card in TEST_CARDS] + ["4111111111111111"]


def findings(text: str, secrets: list[str]) -> list[str]:
    """The secrets that a text contains: plain, with separators between the digits,
    or as bytes in hex or base64.
    """
    return [one for one in secrets if any(re.search(pattern, text) for pattern in _writings(one))]


def _writings(number: str) -> list[str]:
    """How a number may look in a text; base64 depends on what stands before, in three ways."""
    encoded = [b64encode(b"\0" * before + number.encode()).decode()[4:-4] for before in range(3)]
    return [r"[\s.\-+_]{0,3}".join(number), number.encode().hex(), *map(re.escape, encoded)]


def cvc_of(number: str, cvc: str) -> str:
    """American Express prints four digits, the others three."""
    return cvc if number.startswith("3") else cvc[:3]


def cvc_findings(text: str, cvc: str) -> list[str]:
    """The security code where it stands by itself:
    three digits also occur inside longer numbers.
    """
    return re.findall(rf"(?<![0-9A-Za-z.:\\-]){cvc[:3]}{cvc[3]}?(?![0-9A-Za-z.:-])", text)


@pytest.fixture
async def database_url(own_database_url: str) -> str:
    """A database without other tests' rows, among which three digits are always found somewhere."""
    return own_database_url


@pytest.fixture(autouse=True)
def _guarded_transitions() -> None:
    """The databases that tests have to themselves know all transitions."""


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with connected(database_url) as pool:
        yield pool


@pytest.fixture
async def cvc(database: Database) -> str:
    """A security code that nothing in the database looks like, and no id of the rows
    that come next.
    """
    held = await texts_in(database)
    given = [row["last"] for row in await database.fetch("select coalesce(last_value, 0) as last from pg_sequences")]

    def is_like_an_id(cvc: str) -> bool:
        return any(0 <= int(one) - last <= ROWS for one in (cvc, cvc[:3]) for last in given)

    return next(one for one in CVCS if not is_like_an_id(one) and not cvc_findings(held, one))


async def dump(database_url: str) -> str:
    """The whole database as SQL, by a pg_dump that is not older than the server."""
    connection = await asyncpg.connect(database_url)
    major = connection.get_server_version().major
    await connection.close()
    candidates = [Path(f"/usr/lib/postgresql/{major}/bin/pg_dump")] if os.environ.get("PAYDESK_DATABASE_URL") else []
    program = next((path for path in candidates if path.exists()), None) or binary("pg_dump")
    process = await asyncio.create_subprocess_exec(
        program, "--no-owner", database_url, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode()


async def texts_in(database: Database) -> str:
    """All that stands in columns that can hold text;
    three digits would also be found among ids and amounts.
    """
    columns = await database.fetch(
        "select table_name, column_name, data_type from information_schema.columns"
        " where table_schema = 'public' and data_type in ('text', 'jsonb', 'bytea')"
    )
    assert not [one for one in columns if "cvc" in one["column_name"] or "cvv" in one["column_name"]]
    texts = []
    for table, column, kind in columns:
        readable = f"encode(\"{column}\", 'escape')" if kind == "bytea" else f'"{column}"::text'
        rows = await database.fetch(f'select {readable} as text from "{table}"')
        texts += [row["text"] or "" for row in rows]
    return "\n".join(texts)


@pytest.fixture(params=one_of(2, ["json", "console"]))
def logs(request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Everything that a deployment would log, down to the least severity."""
    kept = io.StringIO()
    monkeypatch.setattr(sys, "stderr", kept)
    before = structlog.get_config()
    set_up_logs(settings.model_copy(update={"log_level": "debug", "log_format": request.param}))
    yield kept
    structlog.configure(**before)


async def buy_with_every_card(web: httpx.AsyncClient, signed_form: SignedForm, cvc: str) -> None:
    for number in NUMBERS:
        spaced = " ".join(number[place : place + 4] for place in range(0, len(number), 4))
        for typed in (number, spaced):
            opened = await web.post("/payment/form", data=signed_form())
            path = opened.headers["location"]
            card = {"number": typed, "expiry": "12/40", "cvc": cvc_of(number, cvc), "holder": "Ada Lovelace"}
            answer = await web.post(f"{path}/pay", data={**card, "email": "a@b.example", "country": "GB"})
            assert answer.status_code in (303, 402)
            assert number not in (await web.get(path)).text.partition("<form")[2]
            # Typed into the wrong field, or into a form of the shop's.
            await web.post(f"{path}/pay", data={**card, "holder": typed, "email": typed, "country": "GB"})
            await web.post("/payment/form", data=signed_form(amount="x", note=typed))


async def test_no_number_and_no_cvc_rests_anywhere(
    open_web: OpenWeb,
    signed_form: SignedForm,
    logs: io.StringIO,
    settings: Settings,
    database: Database,
    database_url: str,
    bank: Bank,
    cvc: str,
) -> None:
    def failing(services: Any) -> Any:
        desk = services.desk
        honest = desk.acquirers["simulator"]

        async def decide_and_fail(purchase: Purchase) -> Outcome:
            await honest.authorize(purchase)
            raise RuntimeError(f"can't read the answer to {purchase}")

        acquirers = {"simulator": answering(honest, authorize=decide_and_fail)}
        return replace(services, desk=replace(desk, acquirers=acquirers))

    unlimited = {"declines_per_hour": 1000}
    await buy_with_every_card(await open_web(**unlimited), signed_form, cvc)
    await buy_with_every_card(await open_web(**unlimited, wire=failing), signed_form, cvc)
    record = bank.record
    record._db.execute("pragma wal_checkpoint(truncate)")
    held = settings.simulator_record.read_bytes().decode("latin-1")
    dumped, logged = await dump(database_url), logs.getvalue()
    assert "the call to the acquirer failed" in logged
    assert "COPY public.card" in dumped
    assert "4242" in held, "the last four digits may be read"
    assert [findings(text, NUMBERS) for text in (dumped, logged, held)] == [[], [], []]
    assert [cvc_findings(text, cvc) for text in (await texts_in(database), logged, held)] == [[], [], []]


async def test_this_search_finds_what_is_planted(
    database: Database, database_url: str, merchant: Any, cvc: str
) -> None:
    plant = "insert into customer (merchant_id, live, email, first_name, last_name, username, country, created_at)"
    await database.execute(
        f"{plant} values ($1, false, '4242-4242 4242.4242', 'a', 'b', $2, '', now())", merchant.id, cvc
    )
    try:
        assert findings(await dump(database_url), NUMBERS) == ["4242424242424242"]
        assert cvc_findings(await texts_in(database), cvc) == [cvc]
    finally:
        await database.execute("delete from customer where merchant_id = $1", merchant.id)
    declined = "4000000000000002"
    written = [f"x{declined}x", "4000 0000 0000 0002", "4000-0000-0000-0002", "4000+0000+0000+0002"]
    written.append(declined.encode().hex())
    written += [b64encode(before + declined.encode() + b"after").decode() for before in (b"", b"1", b"12", b"123")]
    for text in written:
        assert declined in findings(text, NUMBERS), text
