"""While a merchant is fenced nothing of it is written, by whatever door or worker,
and others notice nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests import shopfront
from tests.adapters.mail.post_offices import post_office
from tests.breaking import say
from tests.conftest import OpenWeb, SignedForm
from tests.database.statements import all_statements
from tests.database.without_merchant import names_merchant, title
from tests.domain.pingbacks.receiver import Receiver, receiving
from tests.set_back import called, member, somebody, times
from tests.till import Till

from paydesk.adapters.mail import SmtpMailer, parse_smtp_url
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.database.migrating import Migration, migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.cells import fencing
from paydesk.domain.cells.fencing import (
    Fenced,
    close,
    fence,
    fences,
    find_fence,
    in_flight,
    lift,
    require_unfenced,
    say_moved,
)
from paydesk.domain.ledger.settling import settle_due as settle_money
from paydesk.domain.mail.telling import tell_events
from paydesk.domain.merchants.merchant import Merchant, create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.operations import payout_files
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.equipment import outbound_client, sender_settings
from paydesk.settings import Settings
from paydesk.worker import mail_sender
from paydesk_client import Gateway

OTHER_CELL = 7
SOMEBODY = 3 * 10**13
"""A merchant of another cell."""
HOUR = timedelta(hours=1)
LOCKS_OF_NOBODY = {
    "domain/ledger/closing.sql: closable": "the horizon of the whole ledger; sums of who is fenced are made anew",
    "domain/ledger/closing.sql: look": "the horizon of the whole ledger; sums of who is fenced are made anew",
    "domain/ledger/summing_sales.sql: ahead": "the horizon of all sales; sums of who is fenced are made anew",
    "domain/ledger/summing_sales.sql: closable": "the horizon of all sales; sums of who is fenced are made anew",
}


@pytest.fixture
def database_url(own_database_url: str) -> str:
    """Triggers are a database's own."""
    return own_database_url


@pytest.fixture
async def database(own_database_url: str) -> AsyncIterator[Database]:
    async with connected(own_database_url) as pool:
        yield pool


@pytest.fixture
async def working(own_database_url: str) -> AsyncIterator[Database]:
    """What a worker is connected by."""
    async with connected(own_database_url, name="work") as pool:
        yield pool


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"outbound_allow": "127.0.0.0/8"})


async def open_shop(database: Database, vault: Vault, receiver: Receiver, name: str) -> Merchant:
    url = f"{receiver.base}/{name}"
    return await create_merchant(database, vault, name=name, email="o@shop.example", now=utc_now(), pingback_url=url)


@pytest.fixture
async def merchant(database: Database, vault: Vault, receiver: Receiver) -> Merchant:
    return await open_shop(database, vault, receiver, "fenced")


@pytest.fixture
async def beside(database: Database, vault: Vault, receiver: Receiver) -> Shop:
    """Another merchant's side, in the same cell."""
    return shop_of(await open_shop(database, vault, receiver, "beside"), live=False)


async def put_up(database: Database, shop: Shop, *, closed: bool = True) -> None:
    await fence(database, shop.merchant_id, other_cell=OTHER_CELL, tables=GUARDED)
    if closed:
        await close(database, shop.merchant_id, patience=0)


async def guards_on(database: Database) -> int:
    on = "select count(*) from pg_trigger where tgname = 'merchant_is_fenced' and tgenabled <> 'D'"
    return int(await database.fetchval(on))


async def test_a_program_is_told_to_come_back_and_reads_why(
    database: Database, shop: Shop, open_web: OpenWeb, gateway: Gateway
) -> None:
    web = await open_web()
    await put_up(database, shop, closed=False)
    answer = await web.get("/api/v1/payments", headers={"X-ApiKey": gateway.private_key})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")
    assert answer.json()["message"].endswith("moved to another server: nothing was done; try again in a moment")


@pytest.mark.parametrize("moved", [False, True])
async def test_whoever_refuses_says_the_same(database: Database, shop: Shop, *, moved: bool) -> None:
    await put_up(database, shop)
    fenced = await find_fence(database, shop.merchant_id)
    assert fenced is not None
    assert fenced.closed_at is not None
    if moved:
        await say_moved(database, shop.merchant_id, closed_at=fenced.closed_at)
    with pytest.raises(Fenced) as asked:
        await require_unfenced(database, shop.merchant_id)
    with pytest.raises(Fenced) as written:
        await say(database, "merchant", {"id": shop.merchant_id}, name="Another")
    assert str(asked.value) == str(written.value)
    assert ("try again in a moment" in str(asked.value)) is not moved


async def test_a_form_gets_a_page_in_the_customers_language(
    database: Database, shop: Shop, open_web: OpenWeb, signed_form: SignedForm
) -> None:
    web = await open_web()
    await put_up(database, shop, closed=False)
    answer = await web.post("/payment/form", data=signed_form(), headers={"accept-language": "de"})
    assert (answer.status_code, "Dieser Shop zieht gerade um" in answer.text) == (503, True)


async def test_nobody_pays_at_a_page_that_was_open_before(database: Database, desk: Desk, shop: Shop) -> None:
    link = await shopfront.order(database, shop)
    await put_up(database, shop, closed=False)
    with pytest.raises(Fenced):
        await shopfront.pay(desk, link)
    assert list(Till(desk, shop).bank.record.operations()) == []
    assert await database.fetchval("select count(*) from payment_attempt") == 0


async def test_others_are_served_as_before(database: Database, desk: Desk, shop: Shop, beside: Shop) -> None:
    await put_up(database, shop)
    assert await shopfront.buy(desk, beside)


async def test_what_is_under_way_is_written_down_until_the_fence_is_closed(
    database: Database, working: Database, desk: Desk, shop: Shop
) -> None:
    await shopfront.buy(desk, shop)
    await put_up(database, shop, closed=False)
    said = "update payment set revision = revision + 1 where merchant_id = $1"
    assert await database.execute(said, shop.merchant_id) == "UPDATE 1"
    await close(database, shop.merchant_id, patience=0)
    with pytest.raises(Fenced):
        await database.execute(said, shop.merchant_id)
    assert await working.execute(said, shop.merchant_id) == "UPDATE 0"


@pytest.mark.parametrize("how", ["", "-- in batches of 2000: payment (merchant_id, id)\n"])
async def test_a_step_of_the_schema_changes_its_rows_as_all_others(
    database: Database, desk: Desk, shop: Shop, how: str
) -> None:
    await shopfront.buy(desk, shop)
    await put_up(database, shop)
    said = "update payment p set revision = 77 from batch b where p.merchant_id = b.merchant_id and p.id = b.id"
    whole = "update payment set revision = 77"
    assert await migrate(database, steps=[Migration(9000, "9000_step", how + (said if how else whole))])
    assert await database.fetchval("select revision from payment where merchant_id = $1", shop.merchant_id) == 77
    with pytest.raises(Fenced):
        await database.execute(whole)


async def test_it_is_not_closed_before_everybody_who_writes_is_through(
    database: Database, desk: Desk, shop: Shop
) -> None:
    await shopfront.buy(desk, shop)
    await put_up(database, shop, closed=False)
    async with database.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await say(connection, "payment", {"merchant_id": shop.merchant_id}, revision=77)
        closing = asyncio.create_task(close(database, shop.merchant_id, patience=0))
        await asyncio.wait({closing}, timeout=0.3)
        standing = await find_fence(database, shop.merchant_id)
        assert standing is not None
        assert standing.closed_at is None
        await transaction.commit()
    await closing
    assert await database.fetchval("select revision from payment where merchant_id = $1", shop.merchant_id) == 77


async def test_its_pingbacks_wait_and_others_are_sent(
    settings: Settings, database: Database, working: Database, desk: Desk, shop: Shop, beside: Shop, receiver: Receiver
) -> None:
    for one, path in ((shop, "fenced"), (beside, "beside")):
        await shopfront.buy(desk, one, pingback_url=f"{receiver.base}/{path}")
    await put_up(database, shop)
    outbound = await outbound_client(settings, database)
    # Looked at one by one, so that whoever waits must not be taken for the last.
    one_by_one = replace(sender_settings(settings), sides_per_claim=1)
    await PingbackSender(working, desk.vault, outbound, one_by_one).send_due_once(utc_now())
    await outbound.close()
    assert [one.path for one in receiver.received] == ["/beside"]


async def test_its_subscriptions_are_not_charged_and_others_are(
    database: Database, working: Database, desk: Desk, shop: Shop, beside: Shop
) -> None:
    till, other = Till(desk, shop), Till(desk, beside)
    for one in (till, other):
        await one.subscribe()
    await times(database, "subscription", {}, date_next=utc_now() - HOUR)
    await put_up(database, shop)
    await BillingRun(replace(desk, database=working)).charge_due()
    charged = await database.fetch("select distinct merchant_id from payment where renewal")
    assert [row["merchant_id"] for row in charged] == [beside.merchant_id]


async def test_its_open_outcomes_are_left_to_the_other_cell(
    database: Database, working: Database, desk: Desk, shop: Shop, beside: Shop
) -> None:
    for one in (shop, beside):
        await shopfront.buy(desk, one)
    await times(database, "payment_attempt", {}, lookup_at=utc_now() - HOUR)
    await put_up(database, shop)
    await settle_due(replace(desk, database=working), now=utc_now())
    left = "select merchant_id from payment_attempt where lookup_at is not null and lookups = 0"
    assert [row["merchant_id"] for row in await database.fetch(left)] == [shop.merchant_id]


async def test_its_money_does_not_settle_and_others_does(
    database: Database, working: Database, desk: Desk, shop: Shop, beside: Shop
) -> None:
    for one in (shop, beside):
        await shopfront.buy(desk, one)
    await times(database, "payment", {}, funds_due_at=utc_now() - HOUR, funds_look_at=utc_now() - HOUR)
    await put_up(database, shop)
    await settle_money(working, real_now=utc_now())
    settled = await database.fetch("select merchant_id from payment where settled_at is not null")
    assert [row["merchant_id"] for row in settled] == [beside.merchant_id]


async def test_a_pingback_in_the_air_is_waited_for(database: Database, desk: Desk, shop: Shop) -> None:
    await shopfront.buy(desk, shop)
    await put_up(database, shop, closed=False)
    await times(database, "pingback", {}, leased_until=utc_now() + HOUR)
    closing = asyncio.create_task(close(database, shop.merchant_id, patience=600))
    await asyncio.wait({closing}, timeout=0.3)
    assert (closing.done(), str(await in_flight(database, shop.merchant_id))) == (False, "pingbacks: 1")
    await times(database, "pingback", {}, leased_until=utc_now())
    assert not await closing


async def test_a_mail_that_is_being_handed_over_is_waited_for_and_written_down(
    settings: Settings, database: Database, working: Database, desk: Desk, shop: Shop
) -> None:
    await shopfront.choose_mails(database, shop, customer_mails=True, test_mails=True)
    await shopfront.buy(desk, shop)
    assert await tell_events(database, real_now=utc_now(), keep_test=False) == 1
    async with post_office() as office:
        office.held = asyncio.Event()
        mailer = SmtpMailer(parse_smtp_url(office.url), mail_from="Paydesk <pay@desk.example>")
        sender = mail_sender(settings, working, desk.vault, mailer)
        assert await sender.start_due(utc_now()) == 1
        await put_up(database, shop, closed=False)
        closing = asyncio.create_task(close(database, shop.merchant_id, patience=20))
        await asyncio.wait({closing}, timeout=0.3)
        assert str(await in_flight(database, shop.merchant_id)) == "mails: 1"
        office.held.set()
        assert not await closing
        await sender.finish()
        assert len(office.mails) == 1
    assert await database.fetchval("select state from mail where merchant_id = $1", shop.merchant_id) == "sent"


async def test_what_is_in_the_air_too_long_is_told(database: Database, desk: Desk, shop: Shop) -> None:
    await shopfront.buy(desk, shop)
    await times(database, "pingback", {}, leased_until=utc_now() + HOUR)
    await put_up(database, shop, closed=False)
    assert (await close(database, shop.merchant_id, patience=0.1)).pingbacks == 1


async def test_who_is_let_out_goes_on_and_nothing_stays_behind(
    database: Database, desk: Desk, shop: Shop, beside: Shop
) -> None:
    for one in (shop, beside):
        await put_up(database, one)
    await lift(database, shop.merchant_id, tables=GUARDED)
    with pytest.raises(Fenced):
        await shopfront.buy(desk, beside)
    assert await shopfront.buy(desk, shop)
    await lift(database, beside.merchant_id, tables=GUARDED)
    on = await guards_on(database)
    assert (await shopfront.buy(desk, beside) > 0, await fences(database), on) == (True, [], 0)


async def test_who_comes_is_closed_at_once(database: Database) -> None:
    person = await somebody(database, "ada@shop.example")
    await fence(database, SOMEBODY, arrives=True, other_cell=OTHER_CELL, tables=GUARDED)
    with pytest.raises(Fenced):
        await member(database, SOMEBODY, person)


async def test_who_is_here_does_not_come(database: Database, desk: Desk, shop: Shop) -> None:
    with pytest.raises(Conflict, match="in this cell already"):
        await fence(database, shop.merchant_id, arrives=True, other_cell=OTHER_CELL, tables=GUARDED)
    assert (await shopfront.buy(desk, shop) > 0, await guards_on(database)) == (True, 0)


async def test_a_trigger_that_is_switched_off_meanwhile_is_on_when_somebody_is_fenced(
    database: Database, shop: Shop, beside: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However close the end of another one's fence comes to the beginning."""
    await put_up(database, beside)
    begin = fencing.queries.begin

    async def begin_late(*given: object, **asked: object) -> object:
        await lift(database, beside.merchant_id, tables=GUARDED)
        return await begin(*given, **asked)

    monkeypatch.setattr(fencing.queries, "begin", begin_late)
    await put_up(database, shop)
    with pytest.raises(Fenced):
        await called(database, shop.merchant_id, "other")


def test_every_claim_leaves_out_who_is_fenced() -> None:
    claims = {
        title(name): statement.written
        for name, statement in all_statements().items()
        if re.search(r"skip\s+locked", statement.written, re.I) and not names_merchant(statement)
    }
    assert [name for name, sql in claims.items() if "merchant_fence" not in sql and name not in LOCKS_OF_NOBODY] == []


@pytest.mark.parametrize("closed", [False, True])
async def test_who_is_fenced_while_a_file_of_payouts_is_made_is_left_out_of_it(
    database: Database, vault: Vault, shop: Shop, beside: Shop, monkeypatch: pytest.MonkeyPatch, *, closed: bool
) -> None:
    """The other cell would pay the same; everybody else is paid."""

    async def make(key: str, *shops: Shop) -> list[int]:
        async def read_before(*_given: object) -> list[payout_files._Available]:
            await put_up(database, shop, closed=closed)
            return [payout_files._Available("USD", Decimal(5), one.merchant_id, utc_now()) for one in shops]

        monkeypatch.setattr(payout_files, "_may_be_sent", read_before)
        made = await payout_files.make_file(database, COMMAND_LINE, "USD", key, now=utc_now())
        return [line.merchant_id for line in await payout_files.lines_of(database, vault, made)]

    with pytest.raises(Conflict, match="nothing in USD can be sent"):
        await make("theirs", shop)
    assert await make("all", shop, beside) == [beside.merchant_id]
    (file,) = await payout_files.list_files(database, before=2**62, most=9)
    assert (file.transfers, file.total) == (1, Decimal(5))
