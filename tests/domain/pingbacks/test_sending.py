from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from tests import breaking, set_back
from tests.lengths import long

from paydesk.adapters.outbound import OutboundClient
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants import keys
from paydesk.domain.merchants.merchant import Merchant, change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.pingbacks.stamping import IN_CLEAR, is_in_clear
from paydesk_client import Gateway

Eventually = Callable[[Callable[[], Any]], Awaitable[None]]


def has_received(receiver: Any, number: int) -> bool:
    return len(receiver.received) == number


async def row_of(database: Database, pingback_id: int) -> Any:
    return await database.fetchrow("select * from pingback where id = $1", pingback_id)


async def attempts_of(database: Database, pingback_id: int) -> list[Any]:
    return list(
        await database.fetch("select * from pingback_attempt where pingback_id = $1 order by number", pingback_id)
    )


async def test_a_pingback_is_sent_signed_and_acknowledged(
    database: Database, shop: Shop, merchant: Merchant, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    pingback_id = await queue(shop, f"{receiver.base}/pay")
    before = int(utc_now().timestamp())
    assert await sender.send_due_once(utc_now()) == 1
    [received] = receiver.received
    gateway = Gateway(merchant.public_key, merchant.private_key, base_url="http://127.0.0.1")
    assert gateway.pingback().validate(received.body, received.headers)
    assert before <= json.loads(received.body)["pingback_ts"] <= utc_now().timestamp()
    row = await row_of(database, pingback_id)
    assert (row["state"], row["attempts"], row["leased_until"]) == ("acknowledged", 1, None)
    assert row["finished_at"] is not None


@pytest.mark.parametrize(
    "answer", [(200, b"ok"), (200, b"OK"), (200, b"Ok\n"), (200, b" oK \r\n"), (200, b"\tok")], ids=repr
)
async def test_ok_in_any_spelling_acknowledges(
    answer: tuple[int, bytes], database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    receiver.answers["/pay"] = [answer]
    pingback_id = await queue(shop, f"{receiver.base}/pay")
    await sender.send_due_once(utc_now())
    assert (await row_of(database, pingback_id))["state"] == "acknowledged"


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"NOK"),
        (200, b""),
        (200, b"ok."),
        (200, b"<p>ok</p>"),
        (200, b"ok" + b" " * 5000),
        (201, b"ok"),
        (204, b""),
        (302, b"ok"),
        (404, b"ok"),
        (500, b"ok"),
        (501, b"NOK"),
    ],
    ids=lambda answer: f"{answer[0]} {answer[1][:10]!r}",
)
async def test_any_other_answer_is_a_failure(
    answer: tuple[int, bytes], database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    receiver.answers["/pay"] = [answer]
    now = utc_now()
    pingback_id = await queue(shop, f"{receiver.base}/pay", due_at=now)
    await sender.send_due_once(now)
    row = await row_of(database, pingback_id)
    assert (row["state"], row["attempts"], row["finished_at"]) == ("due", 1, None)
    [attempt] = await attempts_of(database, pingback_id)
    assert row["due_at"] == attempt["at"] + timedelta(minutes=30)
    assert attempt["status"] == answer[0]
    assert attempt["response_body"] == answer[1][:4096].decode()


async def test_an_attempt_is_recorded_as_it_was(
    database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    receiver.answers["/pay"] = [(500, b"broken \xff\x00 page")]
    pingback_id = await queue(shop, f"{receiver.base}/pay")
    now = utc_now()
    await sender.send_due_once(now)
    [attempt] = await attempts_of(database, pingback_id)
    [received] = receiver.received
    assert json.loads(attempt["request_headers"]) == received.headers
    assert attempt["request_body"].encode() == received.body
    assert attempt["url"] == f"{receiver.base}/pay"
    assert (attempt["number"], attempt["status"], attempt["error"]) == (1, 500, "")
    assert attempt["response_body"] == "broken \ufffd\ufffd page"
    assert attempt["at"] >= now
    assert attempt["duration_ms"] >= 0


async def test_version_1_sends_the_private_key_and_records_it_masked(
    database: Database, shop: Shop, merchant: Merchant, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    pingback_id = await queue(shop, f"{receiver.base}/pay", sign_version="v1")
    await sender.send_due_once(utc_now())
    [received] = receiver.received
    assert received.headers["X-ApiKey"] == merchant.private_key
    assert not [name for name in received.headers if "signature" in name.lower()]
    [attempt] = await attempts_of(database, pingback_id)
    assert json.loads(attempt["request_headers"]) == {**received.headers, "X-ApiKey": "***"}
    dump = str(await database.fetch("select a::text from pingback_attempt a"))
    assert merchant.private_key not in dump


async def test_version_1_sends_a_form_body_where_the_account_asks_for_it(
    shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    await queue(shop, f"{receiver.base}/pay", sign_version="v1", body_format="form")
    await sender.send_due_once(utc_now())
    [received] = receiver.received
    assert received.headers["Content-Type"] == "application/x-www-form-urlencoded"
    head, _, stamp = received.body.rpartition(b"&pingback_ts=")
    assert head == (
        b"event=payment&payment_order%5Bid%5D=7&payment_order%5Bmerchant_order_id%5D=A+1"
        b"&payment_order%5Bpaid_amount%5D=0.01&payment_order%5Bmerchant_net_revenue%5D=-0.2608"
        b"&user%5Bfirstname%5D=Zo%C3%AB&user%5Bemail%5D=a%40b.example&with_risk_check=0"
    )
    assert stamp.isdigit()


async def test_a_resend_is_stamped_and_signed_anew_and_otherwise_the_same(
    shop: Shop,
    merchant: Merchant,
    sender: PingbackSender,
    receiver: Any,
    queue: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    receiver.answers["/pay"] = [(500, b""), (200, b"ok")]
    now = utc_now()
    await queue(shop, f"{receiver.base}/pay", due_at=now)
    await sender.send_due_once(now)
    monkeypatch.setattr("paydesk.domain.pingbacks.sending.utc_now", lambda: now + timedelta(minutes=31))
    await sender.send_due_once(now + timedelta(minutes=31))
    first, second = receiver.received
    bodies = [json.loads(first.body), json.loads(second.body)]
    stamps = [body["pingback_ts"] for body in bodies]
    assert stamps[1] - stamps[0] in (1859, 1860)
    assert second.body == first.body.replace(str(stamps[0]).encode(), str(stamps[1]).encode())
    for received in (first, second):
        expected = hmac.new(merchant.private_key.encode(), received.body, "sha256").hexdigest()
        assert received.headers["X-Service-Signature"] == expected
    assert {**first.headers, "X-Service-Signature": ""} == {**second.headers, "X-Service-Signature": ""}


async def test_a_failing_pingback_is_sent_every_30_minutes_and_exhausted_after_11_attempts(
    database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    receiver.answers["/pay"] = [(200, b"NOK")]
    now = utc_now()
    pingback_id = await queue(shop, f"{receiver.base}/pay", due_at=now)
    for attempt in range(1, 12):
        assert (await row_of(database, pingback_id))["state"] == "due"
        assert await sender.send_due_once(now) == 1
        assert await sender.send_due_once(now + timedelta(minutes=29, seconds=59)) == 0
        assert len(receiver.received) == attempt
        now += timedelta(minutes=30, seconds=1)
    row = await row_of(database, pingback_id)
    assert (row["state"], row["attempts"]) == ("exhausted", 11)
    assert await sender.send_due_once(now + timedelta(days=30)) == 0
    assert [attempt["number"] for attempt in await attempts_of(database, pingback_id)] == list(range(1, 12))


async def test_an_answer_that_does_not_come_is_a_failure(
    database: Database, shop: Shop, make_sender: Any, impatient: OutboundClient, receiver: Any, queue: Any
) -> None:
    receiver.held.add("/pay")
    pingback_id = await queue(shop, f"{receiver.base}/pay")
    await make_sender(impatient).send_due_once(utc_now())
    [attempt] = await attempts_of(database, pingback_id)
    assert (attempt["status"], attempt["error"]) == (None, "timed out after 0.3 s")
    assert (await row_of(database, pingback_id))["state"] == "due"


async def test_a_private_address_is_a_failure_in_words(
    database: Database, shop: Shop, sender: PingbackSender, queue: Any
) -> None:
    pingback_id = await queue(shop, "http://169.254.169.254/latest/meta-data")
    await sender.send_due_once(utc_now())
    [attempt] = await attempts_of(database, pingback_id)
    assert attempt["error"] == "address not allowed: 169.254.169.254 (link-local)"


async def test_what_waits_for_a_url_is_not_sent(
    database: Database, shop: Shop, sender: PingbackSender, queue: Any
) -> None:
    pingback_id = await queue(shop, None)
    assert await sender.send_due_once(utc_now() + timedelta(days=1)) == 0
    assert (await row_of(database, pingback_id))["state"] == "waiting"


async def test_a_pingback_is_stamped_with_the_key_of_its_checkout_also_after_a_new_pair_came(
    database: Database, vault: Vault, shop: Shop, merchant: Merchant, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    await queue(shop, f"{receiver.base}/pay", sign_version="v1")
    await keys.add(database, vault, merchant.id, public="p" * 20, private="q" * 40, now=utc_now())
    await queue(shop, f"{receiver.base}/pay", sign_version="v1")
    await sender.send_due_once(utc_now())
    assert {one.headers["X-ApiKey"] for one in receiver.received} == {merchant.private_key, "q" * 40}


async def test_a_key_that_was_ended_signs_nothing_any_more(
    database: Database,
    shop: Shop,
    merchant: Merchant,
    vault: Vault,
    sender: PingbackSender,
    receiver: Any,
    queue: Any,
) -> None:
    # The sender knows the old key already: that it was used a moment ago must not keep it alive.
    await queue(shop, f"{receiver.base}/before", sign_version="v1")
    assert await sender.send_due_once(utc_now()) == 1
    await queue(shop, f"{receiver.base}/v1", sign_version="v1")
    await queue(shop, f"{receiver.base}/v2")
    newest = await database.fetchval("select max(id) from merchant_key where merchant_id = $1", merchant.id)
    async with database.acquire() as connection, connection.transaction():
        pair = await keys.rotate(
            connection, vault, merchant.id, replaces=newest, grace=timedelta(0), now=utc_now() - timedelta(seconds=1)
        )
    assert await sender.send_due_once(utc_now()) == 2
    (before,), (v1,), (v2,) = (receiver.at(path) for path in ("/before", "/v1", "/v2"))
    assert (before.headers["X-ApiKey"], v1.headers["X-ApiKey"]) == (merchant.private_key, pair.private)
    expected = hmac.new(pair.private.encode(), v2.body, "sha256").hexdigest()
    assert v2.headers["X-Service-Signature"] == expected


async def test_a_key_that_is_still_valid_signs_what_began_under_it(
    database: Database,
    shop: Shop,
    merchant: Merchant,
    vault: Vault,
    sender: PingbackSender,
    receiver: Any,
    queue: Any,
) -> None:
    await queue(shop, f"{receiver.base}/pay", sign_version="v1")
    newest = await database.fetchval("select max(id) from merchant_key where merchant_id = $1", merchant.id)
    async with database.acquire() as connection, connection.transaction():
        await keys.rotate(connection, vault, merchant.id, replaces=newest, grace=timedelta(days=1), now=utc_now())
    assert await sender.send_due_once(utc_now()) == 1
    assert receiver.at("/pay")[0].headers["X-ApiKey"] == merchant.private_key


async def test_a_pingback_whose_key_can_not_be_opened_is_kept_and_does_not_stop_others(
    database: Database, shop: Shop, other_shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    broken = await queue(shop, f"{receiver.base}/broken")
    await queue(other_shop, f"{receiver.base}/fine")
    await breaking.say(database, "merchant_key", {"merchant_id": shop.merchant_id}, vault_key_id="lost")
    await sender.send_due_once(utc_now())
    assert [one.path for one in receiver.received] == ["/fine"]
    row = await row_of(database, broken)
    assert (row["state"], row["attempts"]) == ("due", 0)


async def test_once_live_a_merchants_test_pingbacks_go_to_the_test_url_only(
    database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    pingback_id = await queue(shop, f"{receiver.base}/form")
    await set_back.went_live(database, shop.merchant_id, test_mode=True)
    assert await sender.send_due_once(utc_now()) == 0
    await change_merchant(database, shop.merchant_id, test_pingback_url=f"{receiver.base}/test")
    assert await sender.send_due_once(utc_now()) == 1
    assert [one.path for one in receiver.received] == ["/test"]
    assert (await row_of(database, pingback_id))["url"] == f"{receiver.base}/test"


async def test_live_pingbacks_are_sent_too(
    database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    await set_back.went_live(database, shop.merchant_id, test_mode=True)
    await queue(Shop(shop.merchant_id, True), f"{receiver.base}/live")
    assert await sender.send_due_once(utc_now()) == 1
    assert [one.path for one in receiver.received] == ["/live"]


async def test_live_no_private_key_goes_over_plain_http(
    database: Database, shop: Shop, merchant: Merchant, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    await set_back.went_live(database, shop.merchant_id, test_mode=True)
    kept = await queue(Shop(shop.merchant_id, True), f"{receiver.base}/old", sign_version="v1")
    await queue(Shop(shop.merchant_id, True), f"{receiver.base}/signed")
    assert await sender.send_due_once(utc_now()) == 2
    assert [one.path for one in receiver.received] == ["/signed"]
    [attempt] = await attempts_of(database, kept)
    assert (attempt["status"], attempt["error"]) == (None, IN_CLEAR)
    assert json.loads(attempt["request_headers"])["X-ApiKey"] == "***"
    assert (await row_of(database, kept))["state"] == "due"


async def test_live_a_test_event_shows_no_private_key_either(sender: PingbackSender, receiver: Any) -> None:
    asked = {"sign_version": "v1", "body_format": "json", "private_key": "secret"}
    _, answer = await sender.try_out(f"{receiver.base}/pay", "{}", **asked, live=True)
    assert (receiver.received, answer.error, answer.sent["X-ApiKey"]) == ([], IN_CLEAR, "***")
    _, answer = await sender.try_out(f"{receiver.base}/pay", "{}", **asked, live=False)
    assert (len(receiver.received), answer.error) == (1, None)


@pytest.mark.parametrize(
    ("url", "sign_version", "live", "refused"),
    [
        ("http://shop.example/", "v1", True, True),
        ("HTTP://shop.example/", "v1", True, True),
        ("https://shop.example/", "v1", True, False),
        ("HTTPS://shop.example/", "v1", True, False),
        ("http://shop.example/", "v2", True, False),
        ("http://shop.example/", "v1", False, False),
    ],
)
def test_what_would_go_in_clear(url: str, sign_version: str, live: bool, refused: bool) -> None:
    assert is_in_clear(url, sign_version=sign_version, live=live) is refused


async def test_a_running_sender_sends_what_becomes_due_without_being_told(
    database: Database,
    shop: Shop,
    sender: PingbackSender,
    run_sender: Any,
    receiver: Any,
    queue: Any,
    eventually: Eventually,
) -> None:
    run_sender(sender)
    for number in range(3):
        pingback_id = await queue(shop, f"{receiver.base}/pay")
        await eventually(partial(has_received, receiver, number + 1))

        async def is_acknowledged(pingback_id: int = pingback_id) -> bool:
            return bool((await row_of(database, pingback_id))["state"] == "acknowledged")

        await eventually(is_acknowledged)


async def test_thousands_are_sent_once_each_by_two_senders(
    database: Database,
    shop: Shop,
    other_shop: Shop,
    make_sender: Any,
    run_sender: Any,
    receiver: Any,
    queue: Any,
    eventually: Eventually,
) -> None:
    for one in (shop, other_shop):
        await queue(one, f"{receiver.base}/{one.merchant_id}", number=600)
    run_sender(make_sender())
    run_sender(make_sender())

    async def all_acknowledged() -> bool:
        return bool(await database.fetchval("select count(*) from pingback where state = 'acknowledged'") == 1200)

    await eventually(all_acknowledged)
    assert len(receiver.received) == 1200
    assert await database.fetchval("select count(distinct pingback_id) from pingback_attempt") == 1200


async def test_a_sender_that_dies_between_sending_and_recording_loses_nothing(
    database: Database, shop: Shop, make_sender: Any, receiver: Any, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pingback_id = await queue(shop, f"{receiver.base}/pay")

    async def dies(*_: object) -> None:
        raise KeyboardInterrupt

    dying = make_sender()
    monkeypatch.setattr(dying._recorder, "_record", dies)
    with pytest.raises(KeyboardInterrupt):
        await dying.send_due_once(utc_now())
    assert len(receiver.received) == 1

    fresh = make_sender()
    assert await fresh.send_due_once(utc_now()) == 0, "the lease still holds"
    await set_back.times(database, "pingback", {}, leased_until=utc_now() - timedelta(seconds=1))
    assert await fresh.send_due_once(utc_now()) == 1
    assert len(receiver.received) == 2
    assert (await row_of(database, pingback_id))["state"] == "acknowledged"


async def test_a_lease_is_in_database_time_whatever_now_is(
    database: Database, shop: Shop, make_sender: Any, receiver: Any, queue: Any, eventually: Eventually
) -> None:
    receiver.held.add("/pay")
    pingback_id = await queue(shop, f"{receiver.base}/pay")
    a_year_on = utc_now() + timedelta(days=365)
    first = asyncio.ensure_future(make_sender().send_due_once(a_year_on))
    await eventually(lambda: receiver.received)
    left = await database.fetchval("select leased_until - now() from pingback where id = $1", pingback_id)
    assert timedelta(0) < left <= timedelta(seconds=40)
    assert await make_sender().send_due_once(a_year_on) == 0
    receiver.let_go.set()
    assert await first == 1


async def test_a_late_ok_counts_and_a_late_failure_does_not(
    database: Database, shop: Shop, make_sender: Any, receiver: Any, queue: Any, eventually: Eventually
) -> None:
    receiver.held.add("/pay")
    receiver.answers["/pay"] = [(200, b"ok"), (500, b"")]
    pingback_id = await queue(shop, f"{receiver.base}/pay")
    sends = []
    for number in (1, 2):
        await set_back.times(database, "pingback", {}, leased_until=None)
        sends.append(asyncio.ensure_future(make_sender().send_due_once(utc_now())))
        await eventually(partial(has_received, receiver, number))
    receiver.let_go.set()
    await asyncio.gather(*sends)
    row = await row_of(database, pingback_id)
    assert (row["state"], row["attempts"]) == ("acknowledged", 2)
    assert len(await attempts_of(database, pingback_id)) == 2


async def test_an_attempt_is_recorded_once_when_the_database_dies_after_recording_it(
    database: Database, shop: Shop, make_sender: Any, receiver: Any, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pingback_id = await queue(shop, f"{receiver.base}/pay")
    sender = make_sender()
    record, calls = sender._recorder._record, []

    async def says_nothing_at_first(batch: Any) -> None:
        calls.append(batch)
        await record(batch)
        if len(calls) == 1:
            raise ConnectionResetError

    monkeypatch.setattr(sender._recorder, "_record", says_nothing_at_first)
    with pytest.raises(ConnectionResetError):
        await sender.send_due_once(utc_now())
    await sender._recorder.flush()
    assert len(calls) == 2
    assert len(await attempts_of(database, pingback_id)) == 1
    assert (await row_of(database, pingback_id))["attempts"] == 1


@long
async def test_outcomes_are_kept_while_the_database_is_away(
    database: Database,
    shop: Shop,
    make_sender: Any,
    run_sender: Any,
    receiver: Any,
    queue: Any,
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pingback_id = await queue(shop, f"{receiver.base}/pay")
    sender = make_sender()
    record, failures = sender._recorder._record, list[Any]()

    async def away_for_a_while(batch: Any) -> None:
        if len(failures) < 3:
            failures.append(batch)
            raise ConnectionRefusedError
        await record(batch)

    monkeypatch.setattr(sender._recorder, "_record", away_for_a_while)
    run_sender(sender)

    async def acknowledged() -> bool:
        return bool((await row_of(database, pingback_id))["state"] == "acknowledged")

    await eventually(acknowledged)
    assert len(failures) == 3
    assert len(receiver.received) == 1


async def test_a_sender_goes_on_when_the_database_is_back(
    shop: Shop,
    make_sender: Any,
    run_sender: Any,
    receiver: Any,
    queue: Any,
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sender = make_sender()
    take, failures = sender._claims.take, list[datetime]()

    async def away_for_a_while(now: datetime, *arguments: Any, **options: Any) -> Any:
        if len(failures) < 3:
            failures.append(now)
            raise ConnectionRefusedError
        return await take(now, *arguments, **options)

    monkeypatch.setattr(sender._claims, "take", away_for_a_while)
    run_sender(sender)
    await queue(shop, f"{receiver.base}/pay")
    await eventually(lambda: len(receiver.received) == 1)


async def test_connections_that_are_cut_again_and_again_lose_nothing(
    database: Database,
    shop: Shop,
    make_sender: Any,
    run_sender: Any,
    receiver: Any,
    queue: Any,
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await queue(shop, f"{receiver.base}/pay", number=400)
    async with database.acquire() as own:
        run_sender(make_sender(lease=21.0))
        for cut in range(1, 6):
            await eventually(lambda expected=cut * 40: len(receiver.received) >= expected)  # type: ignore[misc]
            await own.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
            )

        async def nothing_is_lost() -> bool:
            await own.execute(
                "update pingback set leased_until = null where leased_until < now() + interval '5 seconds'"
            )
            left = "select count(*) from pingback where state <> 'acknowledged'"
            return bool(await own.fetchval(left) == 0)

        await eventually(nothing_is_lost)
        twice = "select count(*) from (select 1 from pingback_attempt group by pingback_id, at having count(*) > 1) a"
        assert await own.fetchval(twice) == 0


async def test_a_stop_finishes_what_is_under_way_and_gives_back_the_rest(
    database: Database, shop: Shop, make_sender: Any, receiver: Any, queue: Any, eventually: Eventually
) -> None:
    receiver.held.add("/pay")
    await queue(shop, f"{receiver.base}/pay", number=6)
    sender, stop = make_sender(per_endpoint=2), asyncio.Event()
    running = asyncio.ensure_future(sender.run(stop))
    await eventually(lambda: len(receiver.received) == 2)
    stop.set()
    await asyncio.sleep(0.05)
    receiver.let_go.set()
    await running
    assert await database.fetchval("select count(*) from pingback where state = 'acknowledged'") == 2
    assert await database.fetchval("select count(*) from pingback where state = 'due' and leased_until is null") == 4
    assert len(receiver.received) == 2


async def test_a_stop_does_not_wait_for_an_endpoint_that_hangs(
    database: Database, shop: Shop, make_sender: Any, receiver: Any, queue: Any, eventually: Eventually
) -> None:
    receiver.held.add("/pay")
    await queue(shop, f"{receiver.base}/pay")
    sender, stop = make_sender(grace=0.1), asyncio.Event()
    running = asyncio.ensure_future(sender.run(stop))
    await eventually(lambda: receiver.received)
    stop.set()
    await running
    assert await database.fetchval("select count(*) from pingback where state = 'due' and leased_until is null") == 1
