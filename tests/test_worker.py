"""What the background work is wired from, and that it tells who must know."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial

import pytest
from aiohttp import web
from pydantic import SecretStr
from tests import set_back
from tests.till import Till

from paydesk import worker
from paydesk.adapters.mail import Mailbox, SmtpMailer
from paydesk.adapters.mail.mailbox import Kept
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import SetupError
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.clocks import ClockWatch
from paydesk.domain.operations.history import History
from paydesk.domain.payments.desk import Desk
from paydesk.equipment import mailer_of
from paydesk.running_settings import announced
from paydesk.settings import Settings
from paydesk.worker import work

URL = SecretStr("smtp://user:hunter2@mail.example")


def with_mail(settings: Settings, url: SecretStr, mail_from: str = "Paydesk <pay@shop.example>") -> Settings:
    return settings.model_copy(update={"smtp_url": url, "mail_from": mail_from})


def test_without_a_mail_server_there_is_no_mailer(settings: Settings) -> None:
    assert mailer_of(settings) is None


def test_a_mail_server_and_a_sender_make_a_mailer(settings: Settings) -> None:
    assert isinstance(mailer_of(with_mail(settings, URL)), SmtpMailer)


@pytest.mark.parametrize(
    ("url", "mail_from", "name"),
    [
        (SecretStr("mail.example:hunter2"), "pay@shop.example", "PAYDESK_SMTP_URL"),
        (SecretStr("smtp://user:hunter2@mail.example:x"), "pay@shop.example", "PAYDESK_SMTP_URL"),
        (URL, "", "PAYDESK_MAIL_FROM"),
    ],
)
def test_a_wrong_setting_is_named_without_its_password(
    settings: Settings, url: SecretStr, mail_from: str, name: str
) -> None:
    with pytest.raises(SetupError, match=name) as wrong:
        mailer_of(with_mail(settings, url, mail_from))
    assert "hunter2" not in str(wrong.value)


def test_the_mail_servers_password_is_written_nowhere(settings: Settings) -> None:
    mailing = Settings(**{**settings.model_dump(), "smtp_url": URL})
    assert "hunter2" not in repr(mailing)
    with announced(mailing):
        said = (settings.data_dir / "running.env").read_text()
    assert "hunter2" not in said
    assert "SMTP_URL" not in said


def alarms(mailbox: Mailbox) -> list[Kept]:
    """The mails about servers that fail; a worker tells of other tests' subscriptions, too."""
    return [kept for kept in mailbox.letters() if "does not accept our pingbacks" in kept.letter.subject]


async def test_an_endpoint_that_keeps_failing_is_one_mail_to_the_owner_with_the_way_to_the_log(
    settings: Settings, database: Database, vault: Vault, desk: Desk, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paydesk.domain.mail.telling.SLOW_PAUSE", 0.05)
    asked: list[str] = []

    async def fail(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=500, text="boom")

    application = web.Application()
    application.router.add_post("/pb", fail)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/pb"
    await database.execute("truncate pingback, pingback_attempt, mail")
    await database.execute(
        """
        insert into pingback (merchant_id, live, event, url, sign_version, key_id, format, payload, state, attempts,
                              due_at, created_at)
        select $1, $2, 'payment', $3, 'v2', (select max(id) from merchant_key where merchant_id = $1), 'json',
               '{"event":"payment"}', 'due', 2, $4::timestamptz, $4
          from generate_series(1, 5)
        """,
        shop.merchant_id, shop.live, url, utc_now() - timedelta(hours=1),
    )  # fmt: skip
    mailbox, stop = Mailbox(), asyncio.Event()
    allowing = settings.model_copy(update={"outbound_allow": "127.0.0.0/8"})
    working = asyncio.ensure_future(work(allowing, database, vault, desk, stop, history=History(), mailbox=mailbox))
    try:
        while len(asked) < 5 or not alarms(mailbox):
            assert not working.done(), working.exception()
            await asyncio.sleep(0.05)
    finally:
        stop.set()
        await working
        await runner.cleanup()
    (kept,) = alarms(mailbox)
    assert kept.letter.recipient == "owner@shop.example"
    for content in (kept.letter.text, kept.letter.html):
        assert f"http://pay.test/account/{shop.merchant_id}/pingbacks" in content
        assert "500" in content


async def test_a_worker_whose_clock_is_off_charges_voids_and_sends_nothing(
    settings: Settings, database: Database, vault: Vault, desk: Desk, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    months = timedelta(days=62)
    monkeypatch.setattr(worker, "ClockWatch", partial(ClockWatch, now=lambda: utc_now() + months))
    await ClockWatch(database, "another, which is right").look()
    club = Till(desk, shop)
    subscription = await club.subscribe()
    await set_back.renewal_due(database, subscription.id)
    stop = asyncio.Event()
    working = asyncio.create_task(work(settings, database, vault, desk, stop, history=History()))
    off = "select count(*) from alarm where kind = 'clock_off' and settled_at is null"
    while not await database.fetchval(off):  # noqa: ASYNC110 (what a test waits for sends no event)
        await asyncio.sleep(0.01)
    stop.set()
    await working
    assert (await club.now(subscription)).paid_number_counter == 1
    assert await database.fetchval("select count(*) from payment_attempt where merchant_id = $1", shop.merchant_id) == 1


@pytest.mark.parametrize("hours", [24, 0])
async def test_a_worker_looks_at_the_payment_page_unless_it_is_not_to(
    settings: Settings, database: Database, vault: Vault, desk: Desk, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    stop, looked = asyncio.Event(), []

    async def look(address: str, every: timedelta, database: Database, stop: asyncio.Event) -> None:
        looked.append((address, every))
        stop.set()

    monkeypatch.setattr(worker, "run_page_watch", look)
    working = asyncio.create_task(
        work(settings.model_copy(update={"page_check_hours": hours}), database, vault, desk, stop, history=History())
    )
    if not hours:
        stop.set()
    await working
    assert looked == ([("http://pay.test", timedelta(hours=24))] if hours else [])
