from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from aiohttp import web as server
from tests import breaking, set_back
from tests.web.account.conftest import PASSWORD, Join, SignUp, Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import Seller, seller_of

from paydesk.adapters.vault import Vault
from paydesk.database.pool import Database
from paydesk.domain.accounts.roles import Role
from paydesk.domain.business.made_up_events import EVENTS
from paydesk.domain.merchants.keys import pairs_of
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.payments.desk import Desk
from paydesk.settings import Settings
from paydesk_client import Gateway


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Pingbacks may reach this machine."""
    return settings.model_copy(update={"outbound_allow": "127.0.0.0/8"})


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


MakeFailed = Callable[..., Awaitable[int]]


@pytest.fixture
def failed(seller: Seller) -> MakeFailed:
    """A pingback all of whose attempts failed; the last one's status and answer are given."""

    async def make(reference: str = "", *, status: int | None = 500, body: str = "boom", error: str = "") -> int:
        payment_id = await seller.sell(reference)
        of_payment = {"merchant_id": seller.shop.merchant_id, "payment_id": payment_id}
        await set_back.given_up(seller.database, of_payment)
        pingback_id = await seller.database.fetchval("select id from pingback where payment_id = $1", payment_id)
        await seller.database.execute(
            "insert into pingback_attempt (merchant_id, live, pingback_id, number, at, url, request_headers,"
            " request_body, status, response_body, error, duration_ms) values ($1, false, $2, 11, now(),"
            """ 'https://shop.example/pingback', '{"X-ApiKey": "***"}', '{"event":"payment"}', $3, $4, $5, 12)""",
            seller.shop.merchant_id,
            pingback_id,
            status,
            body,
            error,
        )
        return int(pingback_id)

    return make


def url(visitor: Visitor, page: object = "") -> str:
    return f"{visitor.merchant_path}/pingbacks{page}"


async def state(seller: Seller, pingback_id: int) -> str:
    return str(await seller.database.fetchval("select state from pingback where id = $1", pingback_id))


async def test_the_log_shows_pingbacks_to_who_may_see_them(
    owner: Visitor, seller: Seller, sign_up: SignUp, join: Join
) -> None:
    await seller.sell("A-1")
    pingback_id = await seller.database.fetchval(
        "select id from pingback where merchant_id = $1", seller.shop.merchant_id
    )
    page = url(owner)
    one = f"{page}/{pingback_id}"
    assert one in (await owner.see(page)).text
    assert one in (await owner.see(f"{page}?reference=A-1")).text
    assert one in (await owner.see(f"{page}?event=payment")).text
    assert "Nothing fits these filters." in text_of(await owner.see(f"{page}?event=refund"))
    assert "Nothing fits these filters." in text_of(await owner.see(f"{page}?reference=B"))
    assert (await owner.see(f"{page}?state=%00x&event=%00&before=9-9-9&since=x")).status_code == 200
    assert "A-1" in text_of(await owner.see(one))
    assert (await owner.see(f"{page}/{pingback_id + 1000}")).status_code == 404
    viewer = await join(owner, Role.viewer)
    assert (await viewer.see(page)).status_code == 403
    assert (await (await sign_up("Other")).see(one)).status_code == 404


@pytest.mark.parametrize(
    ("attempt", "short", "advice"),
    [
        ({"status": 500}, "Your server failed", "Look for an error of your program"),
        ({"status": 200, "body": "NOK"}, "Your program answered NOK", "verifies the raw body"),
        ({"status": 200, "body": "<p>thanks"}, "The answer is not ok", "nothing but ok"),
        ({"status": 302, "body": ""}, "Redirected", "Redirects are not followed"),
        ({"status": None, "body": "", "error": "name not found: a.example"}, "host name was not found", "DNS"),
        ({"status": None, "body": "", "error": "timed out after 15 s"}, "No answer in time", "as soon as"),
        ({"status": None, "error": "address not allowed: 10.0.0.1 (x)"}, "address is not public", "private networks"),
        ({"status": None, "error": "TLS: certificate not accepted: x"}, "TLS connection failed", "certificate"),
        ({"status": None, "error": "connection refused"}, "connection was refused", "Nothing listens"),
    ],
)
async def test_why_a_pingback_failed_is_said_in_plain_words(
    owner: Visitor, failed: MakeFailed, attempt: dict[str, Any], short: str, advice: str
) -> None:
    pingback_id = await failed(**attempt)
    row = re.search(rf'<tr>(?:(?!<tr>).)*/pingbacks/{pingback_id}".*?</tr>', (await owner.see(url(owner))).text, re.S)
    assert row is not None
    assert short in row[0]
    shown = text_of(await owner.see(url(owner, f"/{pingback_id}")))
    assert short in shown
    assert advice in shown
    assert attempt.get("error", "") in shown


async def test_an_answer_that_is_hostile_is_only_text(owner: Visitor, failed: MakeFailed) -> None:
    pingback_id = await failed(status=200, body="<script>alert(1)</script>")
    shown = (await owner.see(url(owner, f"/{pingback_id}"))).text
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert" in shown


async def test_one_is_sent_again_from_its_page_and_from_the_log(
    owner: Visitor, seller: Seller, failed: MakeFailed
) -> None:
    pingback_id = await failed()
    page = url(owner, f"/{pingback_id}")
    assert leads_to(await owner.send(page, f"{page}/resend")) == page
    assert await state(seller, pingback_id) == "due"
    shown = await owner.see(page)
    assert f"Pingback {pingback_id} is sent again now, to http" in text_of(shown)
    assert f'hx-get="{page}"' in shown.text
    other = await failed()
    log = url(owner, "?state=exhausted")
    assert leads_to(await owner.send(log, url(owner, f"/{other}/resend"))) == log
    assert await state(seller, other) == "due"
    assert await seller.audited("pingback_resent") == [f"pingback {pingback_id}", f"pingback {other}"]


async def where(seller: Seller, pingback_id: int) -> str:
    return str(await seller.database.fetchval("select url from pingback where id = $1", pingback_id))


async def test_sending_again_says_where_it_goes_and_takes_another_url(
    owner: Visitor, seller: Seller, failed: MakeFailed, join: Join
) -> None:
    pingback_id = await failed()
    page, elsewhere = url(owner, f"/{pingback_id}"), "https://other.example/pay"
    assert "Sent again it goes to https://shop.example/pingback" in text_of(await owner.see(page)), "as its form says"
    await breaking.say(seller.database, "payment", {"merchant_id": seller.shop.merchant_id}, pingback_url=None)
    await owner.send(url(owner, "").replace("pingbacks", "developers"), pingback_url="https://now.example/pay")
    assert "Sent again it goes to https://now.example/pay" in text_of(await owner.see(page))
    asked = text_of(await owner.see(url(owner, "/resend")))
    assert "at the account's URL of now, https://now.example/pay." in asked
    for wrong in ("ftp://x.example/", "https://me:secret@x.example/", "https:///"):
        answer = await owner.send(page, f"{page}/resend", url=wrong)
        assert answer.status_code == 400
        assert re.search(r'id="f-url"[^>]*aria-invalid="true"', answer.text)
    assert await state(seller, pingback_id) == "exhausted"
    assert leads_to(await owner.send(page, f"{page}/resend", url=elsewhere)) == page
    assert (await where(seller, pingback_id), await state(seller, pingback_id)) == (elsewhere, "due")
    details = await seller.database.fetchval(
        "select details ->> 'url' from audit_entry where merchant_id = $1 and action = 'pingback_resent'",
        seller.shop.merchant_id,
    )
    assert details == elsewhere
    support = await join(owner, Role.support)
    assert "Send it to another URL" not in (await support.see(page)).text
    answer = await support.send(page, f"{page}/resend", url="https://third.example/")
    assert answer.status_code == 403
    assert await where(seller, pingback_id) == elsewhere


async def test_the_private_key_of_version_1_goes_elsewhere_only_with_the_password(
    owner: Visitor, seller: Seller, failed: MakeFailed
) -> None:
    pingback_id = await failed()
    await breaking.say(seller.database, "pingback", {"id": pingback_id}, sign_version="v1")
    page = url(owner, f"/{pingback_id}")
    await set_back.password_long_ago(seller.database)
    answer = await owner.send(page, f"{page}/resend", url="https://other.example/pay")
    assert (answer.status_code, "Confirm it's you" in text_of(answer)) == (403, True)
    assert await state(seller, pingback_id) == "exhausted"
    assert leads_to(await owner.send(page, f"{page}/resend")) == page, "where it goes anyway it needs none"


async def test_the_way_back_is_the_log_or_the_pingback_and_nowhere_else(owner: Visitor, failed: MakeFailed) -> None:
    pingback_id = await failed()
    page = url(owner, f"/{pingback_id}")
    for hostile in ("https://evil.example/", "//evil.example", "/account/logout", f"{url(owner)}x"):
        assert leads_to(await owner.send(page, f"{page}/resend", back=hostile)) == page


async def test_the_page_stops_asking_for_news_once_there_will_be_none(
    owner: Visitor, seller: Seller, failed: MakeFailed
) -> None:
    pingback_id = await failed()
    for page in (url(owner, f"/{pingback_id}"), url(owner)):
        assert "hx-get" not in (await owner.see(page)).text
    await owner.send(url(owner, f"/{pingback_id}"), url(owner, f"/{pingback_id}/resend"))
    for page in (url(owner, f"/{pingback_id}"), url(owner), url(owner, "/health")):
        part = await owner.see(page, **{"HX-Request": "true"})
        assert "<html" not in part.text
        assert "every" in part.text
    await breaking.say(seller.database, "pingback", {"id": pingback_id}, state="acknowledged")
    for page in (url(owner, f"/{pingback_id}"), url(owner), url(owner, "/health")):
        assert "every" not in (await owner.see(page, **{"HX-Request": "true"})).text
    assert leads_to(await owner.see(url(owner, "/health"))) == url(owner)


async def test_a_pingback_that_has_nowhere_to_go_says_what_to_do(
    owner: Visitor, seller: Seller, failed: MakeFailed
) -> None:
    pingback_id = await failed()
    page = url(owner, f"/{pingback_id}")
    await set_back.went_live(seller.database, seller.shop.merchant_id, test_mode=True)
    answer = await owner.send(page, f"{page}/resend")
    assert answer.status_code == 409
    assert "test pingback URL" in text_of(answer)
    assert await seller.audited("pingback_resent") == []


async def test_all_failed_are_sent_again_after_a_question_that_says_how_many(
    owner: Visitor, seller: Seller, failed: MakeFailed
) -> None:
    ids = [await failed() for _ in range(3)]
    fine = await seller.sell()
    await breaking.say(seller.database, "pingback", {"id": ids[2]}, event="refund")
    log = (await owner.see(url(owner, "?state=exhausted&event=payment"))).text
    assert url(owner, "/resend?event=payment") in log
    asked = await owner.see(url(owner, "/resend?event=payment"))
    assert "Pingbacks that are sent again: 2." in text_of(asked)
    fields = fields_of(asked.text, url(owner, "/resend"))
    assert leads_to(await owner.web.post(url(owner, "/resend"), data=fields)) == url(owner, "?event=payment")
    assert [await state(seller, one) for one in ids] == ["due", "due", "exhausted"]
    assert "Pingbacks that are sent again now: 2." in text_of(await owner.see(url(owner)))
    assert await seller.state(fine) == "captured"
    assert leads_to(await owner.web.post(url(owner, "/resend"), data=fields)) == url(owner)
    assert "No failed pingback of these could be sent again." in text_of(await owner.see(url(owner)))
    assert await seller.audited("pingback_resent") == ["failed pingbacks"]
    assert leads_to(await owner.see(url(owner, "/resend?event=payment"))) == url(
        owner, "?state=exhausted&event=payment"
    )


async def test_all_can_not_be_sent_again_by_who_or_what_it_is_about(owner: Visitor, failed: MakeFailed) -> None:
    await failed("A-1")
    assert "Send all failed again" in text_of(await owner.see(url(owner, "?state=exhausted")))
    assert "Send all failed again" not in text_of(await owner.see(url(owner, "?state=exhausted&reference=A-1")))


async def test_other_merchants_and_viewers_resend_nothing(
    owner: Visitor, seller: Seller, failed: MakeFailed, sign_up: SignUp, join: Join
) -> None:
    pingback_id = await failed()
    viewer, other = await join(owner, Role.viewer), await sign_up("Other")
    actions = (url(owner, f"/{pingback_id}/resend"), url(owner, "/resend"), url(owner, "/test"))
    for visitor, status in ((viewer, 403), (other, 404)):
        token = fields_of((await visitor.see("/account/security")).text, "/account/logout")
        for action in actions:
            assert (await visitor.web.post(action, data=token)).status_code == status
    mine = url(other, f"/{pingback_id}/resend")
    token = fields_of((await other.see("/account/security")).text, "/account/logout")
    assert (await other.web.post(mine, data=token)).status_code == 404
    assert (await other.web.post(url(other, "/resend"), data=token)).status_code == 303
    assert await state(seller, pingback_id) == "exhausted"


async def test_how_the_endpoint_stands_is_above_the_log(owner: Visitor, seller: Seller, failed: MakeFailed) -> None:
    assert "Endpoint health" not in text_of(await owner.see(url(owner)))
    await failed()
    shown = text_of(await owner.see(url(owner)))
    assert "Endpoint health" in shown
    assert "Acknowledged, 24 hours 0% 0 of 1" in shown
    assert "Failing since just now" in shown
    assert "Your server failed · HTTP 500" in shown
    await seller.sell()
    await set_back.acknowledged(seller.database, {"merchant_id": seller.shop.merchant_id, "state": "due"})
    shown = text_of(await owner.see(url(owner)))
    assert "Acknowledged, 24 hours 50% 1 of 2" in shown
    assert "Healthy Last success just now" in shown


# Test events


@pytest.fixture
async def endpoint() -> AsyncIterator[tuple[str, list[tuple[bytes, dict[str, str]]]]]:
    """A merchant's server that answers `ok`, and what it received."""
    received: list[tuple[bytes, dict[str, str]]] = []

    async def handle(request: server.Request) -> server.Response:
        received.append((await request.read(), dict(request.headers)))
        return server.Response(text="ok" if request.path == "/pb" else "NOK")

    application = server.Application()
    application.router.add_post("/{path:.*}", handle)
    runner = server.AppRunner(application)
    await runner.setup()
    await server.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", received
    await runner.cleanup()


Endpoint = tuple[str, list[tuple[bytes, dict[str, str]]]]


async def send_test(visitor: Visitor, **fields: str) -> httpx.Response:
    return await visitor.send(url(visitor, "/test"), **{"event": "payment", "sign_version": "v2", **fields})


async def test_a_test_event_shows_what_was_sent_and_what_came_back_and_changes_nothing(
    owner: Visitor, seller: Seller, endpoint: Endpoint, database: Database, vault: Vault
) -> None:
    base, received = endpoint
    await change_merchant(database, seller.shop.merchant_id, pingback_url=f"{base}/pb")
    assert f'value="{base}/pb"' in (await owner.see(url(owner, "/test"))).text
    answer = await send_test(owner, url=f"{base}/pb", sign_version="v1")
    assert answer.status_code == 200
    shown = text_of(answer)
    assert "Acknowledged" in shown
    assert "X-ApiKey: ***" in shown
    assert '"merchant_order_id":"paydesk-test-event"' in shown
    public, private = (await pairs_of(database, vault, seller.shop.merchant_id))[0]
    assert private not in answer.text
    body, headers = received[0]
    assert Gateway(public, private).pingback().parse(body, headers)["event"] == "payment"
    for table in ("pingback", "payment", "ledger_entry"):
        assert not await database.fetchval(
            f"select count(*) from {table} where merchant_id = $1", seller.shop.merchant_id
        )
    assert await seller.audited("test_event_sent") == [f"{base}/pb"]


async def test_a_test_event_that_is_not_acknowledged_says_why(
    owner: Visitor, endpoint: Endpoint, seller: Seller
) -> None:
    base, received = endpoint
    # No more are sent in a minute; a resumption differs from a pause in its name alone.
    tried = [event for event in EVENTS if event != "subscription_resumed"]
    for event in tried:
        shown = text_of(await send_test(owner, url=f"{base}/other", event=event))
        assert "Your program answered NOK" in shown
        assert "HTTP 200" in shown
    assert len(received) == len(tried)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", ""),
        ("url", "javascript:alert(1)"),
        ("url", "ftp://shop.example/"),
        ("url", "https://u:p@shop.example/"),
        ("url", "https://shop.example/\x01"),
        ("url", "https://" + "x" * 3000),
        ("event", "nothing"),
        ("sign_version", "v3"),
    ],
)
async def test_what_is_wrong_with_a_test_event_is_said_at_its_field(
    owner: Visitor, seller: Seller, field: str, value: str
) -> None:
    answer = await send_test(owner, **{"url": "https://shop.example/", field: value})
    assert answer.status_code == 400
    assert f'id="e-{field}"' in answer.text
    assert await seller.audited("test_event_sent") == []


async def test_a_private_network_is_not_reached_by_a_test_event(owner: Visitor) -> None:
    for host in ("169.254.169.254", "10.0.0.1", "[fd00::1]"):
        assert "The address is not public" in text_of(await send_test(owner, url=f"http://{host}/"))


async def test_support_may_try_the_accounts_own_url_and_no_other(
    owner: Visitor, seller: Seller, endpoint: Endpoint, join: Join
) -> None:
    base, received = endpoint
    await change_merchant(seller.database, seller.shop.merchant_id, pingback_url=f"{base}/pb")
    support = await join(owner, Role.support)
    assert "Acknowledged" in text_of(await send_test(support, url=f"{base}/pb"))
    assert (await send_test(support, url=f"{base}/mine")).status_code == 403
    assert (await send_test(support, url=f"{base}/mine", sign_version="v1")).status_code == 403
    assert len(received) == 1


async def test_the_private_key_leaves_for_a_url_that_is_not_the_accounts_only_with_the_password(
    owner: Visitor, seller: Seller, endpoint: Endpoint
) -> None:
    base, received = endpoint
    await set_back.password_long_ago(seller.database)
    answer = await send_test(owner, url=f"{base}/pb", sign_version="v1")
    assert answer.status_code == 403
    assert "Confirm it's you" in text_of(answer)
    assert received == []
    fields = fields_of(answer.text, "/account/confirm")
    again = await owner.web.post("/account/confirm", data={**fields, "_password": PASSWORD})
    assert (again.status_code, again.headers["location"]) == (307, url(owner, "/test"))
    assert "Acknowledged" in text_of(await owner.web.post(again.headers["location"], data=fields))
    assert len(received) == 1


async def test_test_events_are_limited(owner: Visitor, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paydesk.domain.business.test_events.A_MINUTE", 1)
    base, received = endpoint
    answers = [await send_test(owner, url=f"{base}/pb") for _ in range(3)]
    # Two, if a minute ended just between them.
    assert 0 < len(received) < 3
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) == 3 - len(received)
    assert all("test event is sent in a minute" in text_of(answer) for answer in refused)
