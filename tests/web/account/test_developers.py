import asyncio
import re
from datetime import timedelta
from decimal import Decimal

import httpx
import pytest
from tests import set_back
from tests.databases import until_waiting
from tests.web.account.conftest import PASSWORD, Join, SignUp, Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import Seller, seller_of

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.team import add_member
from paydesk.domain.merchants.ignored_fields import SentWith, note_ignored
from paydesk.domain.merchants.keys import find_signer, pairs_of
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.subscription_terms import Terms
from paydesk_client import Gateway


def page(visitor: Visitor, name: str = "") -> str:
    return f"{visitor.merchant_path}/developers{name}"


def merchant_id(visitor: Visitor) -> int:
    return int(visitor.merchant_path.split("/")[2])


async def pair(visitor: Visitor, database: Database, vault: Vault) -> tuple[str, str]:
    return (await pairs_of(database, vault, merchant_id(visitor)))[0]


ALL = ["sign", "read", "move"]


async def rotate(visitor: Visitor, hours: str = "24", scopes: tuple[str, ...] = ()) -> httpx.Response:
    return await visitor.send(page(visitor, "/keys"), grace=hours, scope=scopes or ALL)


async def audited(database: Database, visitor: Visitor, action: str) -> int:
    return int(
        await database.fetchval(
            "select count(*) from audit_entry where merchant_id = $1 and action = $2", merchant_id(visitor), action
        )
    )


def shown_keys(answer: httpx.Response) -> tuple[str, str]:
    keys = re.findall(r'data-copy="([0-9a-f]+)"', answer.text)
    assert [len(key) for key in keys] == [32, 48]
    return keys[0], keys[1]


async def order(web: httpx.AsyncClient, public: str, private: str, reference: str = "A-1") -> httpx.Response:
    gateway = Gateway(public, private, base_url="http://pay.test")
    fields = {
        "api_key": public, "merchant_order_id": reference, "amount": "10.00", "currency": "USD",
        "description": "A mug", "success_url": "https://shop.example/thanks", "sign_version": "v2",
    }  # fmt: skip
    return await web.post("/sandbox/payment/form", data={**fields, "hash": gateway.signature().sign(fields)})


async def test_the_public_key_is_shown_and_no_private_one(owner: Visitor, database: Database, vault: Vault) -> None:
    public, private = await pair(owner, database, vault)
    for name in ("", "/code", "/keys"):
        shown = await owner.see(page(owner, name))
        assert shown.status_code == 200
        assert private not in shown.text
        if name != "/keys":
            assert public in shown.text


async def test_the_first_keys_are_shown_once(
    owner: Visitor, join: Join, database: Database, vault: Vault, web: httpx.AsyncClient
) -> None:
    first = page(owner, "/keys/first")
    assert "See your keys" in text_of(await owner.see(page(owner)))
    developer = await join(owner, Role.developer)
    assert "See your keys" not in text_of(await developer.see(page(developer)))
    assert leads_to(await developer.see(first)) == page(developer)
    form = fields_of((await owner.see(first)).text, first)
    answers = [await owner.web.post(first, data=form) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 409]
    assert shown_keys(answers[0]) == await pair(owner, database, vault)
    assert answers[0].headers["cache-control"] == "no-store"
    assert "make new ones" in text_of(answers[1])
    assert (await order(web, *shown_keys(answers[0]))).status_code == 303
    assert await audited(database, owner, "key_shown") == 1
    assert leads_to(await owner.see(first)) == page(owner)
    assert "Make new keys" in text_of(await owner.see(page(owner)))


async def test_keys_that_took_the_place_of_the_first_are_not_shown_again(owner: Visitor) -> None:
    first = page(owner, "/keys/first")
    form = fields_of((await owner.see(first)).text, first)
    await rotate(owner)
    assert (await owner.web.post(first, data=form)).status_code == 409
    assert leads_to(await owner.see(first)) == page(owner)


async def test_a_shop_that_was_opened_by_command_has_shown_its_keys(
    owner: Visitor, database: Database, vault: Vault
) -> None:
    merchant = await create_merchant(database, vault, name="Mugs", email="m@shop.example", now=utc_now())
    person_id = await database.fetchval("select id from person where email = $1", owner.email)
    await add_member(database, merchant.id, person_id, Role.owner, now=utc_now())
    shop = f"/account/{merchant.id}/developers"
    assert leads_to(await owner.see(f"{shop}/keys/first")) == shop


async def test_new_keys_are_shown_once_and_work_beside_the_old_ones(
    owner: Visitor, database: Database, vault: Vault, web: httpx.AsyncClient
) -> None:
    old = await pair(owner, database, vault)
    answer = await rotate(owner)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    new = shown_keys(answer)
    assert new == await pair(owner, database, vault)
    assert new[1] not in (await owner.see(page(owner))).text
    assert "Valid until" in text_of(await owner.see(page(owner)))
    for number, keys in enumerate((old, new)):
        assert (await order(web, *keys, f"A-{number}")).status_code == 303
        called = await web.get("/sandbox/api/v1/payments", headers={"X-ApiKey": keys[1]})
        assert called.status_code == 200
    later = utc_now() + timedelta(hours=25)
    assert await find_signer(database, vault, old[0], "192.0.2.1", later) is None
    assert await find_signer(database, vault, new[0], "192.0.2.1", later) is not None
    assert await audited(database, owner, "key_rotated") == 1
    told = await database.fetchval(
        "select count(*) from mail where recipient = $1 and facts ->> 'what' = 'key_rotated'", owner.email
    )
    assert told == 1


async def test_keys_that_somebody_else_knows_end_at_once(
    owner: Visitor, database: Database, vault: Vault, web: httpx.AsyncClient
) -> None:
    old = await pair(owner, database, vault)
    assert "The old keys have ended" in text_of(await rotate(owner, "0"))
    assert (await order(web, *old)).status_code == 404
    assert (await web.get("/sandbox/api/v1/payments", headers={"X-ApiKey": old[1]})).status_code == 401
    assert (await order(web, *await pair(owner, database, vault))).status_code == 303


def end_of(visitor: Visitor, shown: httpx.Response) -> str:
    """Where the button beside the old key leads."""
    return str(re.findall(rf'href="({page(visitor)}/keys/\d+/end)"', shown.text)[0])


async def test_an_old_key_is_ended_before_its_time_once_asked(
    owner: Visitor, database: Database, vault: Vault, web: httpx.AsyncClient
) -> None:
    old = await pair(owner, database, vault)
    await rotate(owner, "168")
    end = end_of(owner, await owner.see(page(owner)))
    asked = await owner.see(end)
    assert old[0] in asked.text
    assert "refused at once" in text_of(asked)
    assert (await order(web, *old, "A-1")).status_code == 303, "asking alone changes nothing"
    assert leads_to(await owner.send(end)) == page(owner)
    shown = await owner.see(page(owner))
    assert "The old key has ended." in text_of(shown)
    assert "Ended on" in text_of(shown)
    assert "/end" not in shown.text
    assert (await order(web, *old, "A-2")).status_code == 404
    assert (await web.get("/sandbox/api/v1/payments", headers={"X-ApiKey": old[1]})).status_code == 401
    assert (await order(web, *await pair(owner, database, vault), "A-3")).status_code == 303
    assert await audited(database, owner, "key_ended") == 1
    told = await database.fetchval(
        "select count(*) from mail where recipient = $1 and facts ->> 'what' = 'key_ended'", owner.email
    )
    assert told == 1
    assert (await owner.see(end)).status_code == 404, "it has ended already"
    token = fields_of(shown.text, "/account/logout")
    assert (await owner.web.post(end, data=token)).status_code == 404
    assert await audited(database, owner, "key_ended") == 1


async def test_the_newest_key_and_another_shops_are_never_ended(
    owner: Visitor, sign_up: SignUp, database: Database, vault: Vault
) -> None:
    await rotate(owner)
    old_end = end_of(owner, await owner.see(page(owner)))
    newest = await database.fetchval("select max(id) from merchant_key where merchant_id = $1", merchant_id(owner))
    token = fields_of((await owner.see("/account/security")).text, "/account/logout")
    assert (await owner.web.post(page(owner, f"/keys/{newest}/end"), data=token)).status_code == 404
    other = await sign_up("Other Shop")
    foreign = fields_of((await other.see("/account/security")).text, "/account/logout")
    there = old_end.replace(owner.merchant_path, other.merchant_path)
    for path in (there, old_end):
        assert (await other.see(path)).status_code == 404
        assert (await other.web.post(path, data=foreign)).status_code == 404
    assert await find_signer(database, vault, (await pair(owner, database, vault))[0], "192.0.2.1", utc_now())
    assert await audited(database, owner, "key_ended") == 0


async def test_ending_a_key_needs_the_password_again_and_the_right(
    owner: Visitor, join: Join, database: Database
) -> None:
    await rotate(owner)
    end = end_of(owner, await owner.see(page(owner)))
    for role in (Role.viewer, Role.support):
        member = await join(owner, role)
        token = fields_of((await member.see("/account/security")).text, "/account/logout")
        assert (await member.see(end)).status_code == 403
        assert (await member.web.post(end, data=token)).status_code == 403
    token = fields_of((await owner.see("/account/security")).text, "/account/logout")
    await set_back.password_long_ago(database, owner.email)
    assert leads_to(await owner.see(end)).startswith("/account/confirm")
    assert (await owner.web.post(end, data=token)).status_code == 403
    assert await audited(database, owner, "key_ended") == 0


async def test_the_same_form_makes_keys_once(owner: Visitor, database: Database) -> None:
    hidden = fields_of((await owner.see(page(owner, "/keys"))).text, page(owner, "/keys"))
    answers = [
        await owner.web.post(page(owner, "/keys"), data={**hidden, "grace": "24", "scope": ALL}) for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [200, 409]
    assert await audited(database, owner, "key_rotated") == 1


async def test_the_same_form_sent_twice_at_once_makes_keys_once(owner: Visitor, database: Database) -> None:
    hidden = fields_of((await owner.see(page(owner, "/keys"))).text, page(owner, "/keys"))
    form = {**hidden, "grace": "0", "scope": ALL}
    async with asyncio.timeout(30), database.acquire() as holding:
        async with holding.transaction():
            await holding.fetchval("select id from merchant where id = $1 for update", merchant_id(owner))
            sent = [asyncio.create_task(owner.web.post(page(owner, "/keys"), data=form)) for _ in range(2)]
            await until_waiting(database, *sent)
        answers = await asyncio.gather(*sent)
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert await audited(database, owner, "key_rotated") == 1


async def test_new_keys_need_the_password_again(owner: Visitor, database: Database) -> None:
    hidden = fields_of((await owner.see(page(owner, "/keys"))).text, page(owner, "/keys"))
    await set_back.password_long_ago(database, owner.email)
    assert leads_to(await owner.see(page(owner, "/keys"))).startswith("/account/confirm")
    asked = await owner.web.post(page(owner, "/keys"), data={**hidden, "grace": "24", "scope": ALL})
    assert asked.status_code == 403
    assert await audited(database, owner, "key_rotated") == 0
    fields = fields_of(asked.text, "/account/confirm")
    confirmed = await owner.web.post("/account/confirm", data={**fields, "_password": PASSWORD})
    assert "<h1>Your new keys</h1>" in confirmed.text or confirmed.status_code in (307, 308), text_of(confirmed)


@pytest.mark.parametrize("grace", ["", "1", "-1", "x", "99999999999", "24.5"])
async def test_another_grace_period_is_refused(owner: Visitor, database: Database, grace: str) -> None:
    assert (await rotate(owner, grace)).status_code == 400
    assert await audited(database, owner, "key_rotated") == 0


@pytest.mark.parametrize("role", [Role.viewer, Role.support])
async def test_who_may_not_touch_the_integration_is_refused(owner: Visitor, join: Join, role: Role) -> None:
    hidden = fields_of((await owner.see(page(owner, "/keys"))).text, page(owner, "/keys"))
    member = await join(owner, role)
    token = fields_of((await member.see("/account/security")).text, "/account/logout")["csrf"]
    for name in ("", "/keys", "/clock", "/clock/reset"):
        assert (await member.see(page(owner, name))).status_code == 403
        answer = await member.web.post(page(owner, name), data={**hidden, "csrf": token, "grace": "24", "by": "1d"})
        assert answer.status_code == 403
    assert (await member.see(page(owner, "/code"))).status_code == 403


async def test_another_merchants_pages_are_not_found(owner: Visitor, sign_up: SignUp) -> None:
    other = await sign_up("Other")
    for name in ("", "/keys", "/code", "/clock", "/clock/reset", "/refused"):
        assert (await other.see(page(owner, name))).status_code == 404


async def test_settings_are_saved_and_logged(owner: Visitor, database: Database) -> None:
    form = {
        "pingback_url": "https://shop.example/pingback", "test_pingback_url": "", "pingback_format": "form",
        "sign_version": "v1", "event": ["subscription_expired", "refund", "chargeback"],
    }  # fmt: skip
    assert leads_to(await owner.send(page(owner), **form)) == page(owner)
    row = await database.fetchrow("select * from merchant where id = $1", merchant_id(owner))
    assert row["pingback_url"] == "https://shop.example/pingback"
    assert row["test_pingback_url"] is None
    assert (row["pingback_format"], row["sign_version"]) == ("form", "v1")
    assert row["extra_events"] == ["subscription_expired"]
    ends = ["subscription_cancelled", "subscription_stopped"]
    assert row["muted_events"] == ["partial_refund", "refund_failed", "chargeback_reversed", *ends]
    assert await audited(database, owner, "integration_changed") == 1
    await owner.send(page(owner), **form)
    assert await audited(database, owner, "integration_changed") == 1, "nothing was changed"
    assert "sign_version' =&gt; 'v1'" in html_of(await owner.see(page(owner, "/code")))


def html_of(answer: httpx.Response) -> str:
    return answer.text.replace("&#39;", "'")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://10.1.2.3:9000/pb", "10.1.2.3"),
        ("https://[fd00::1]/pb", "fd00::1"),
        ("http://169.254.169.254/", "169.254"),
    ],
)
async def test_a_private_address_is_saved_with_a_warning(owner: Visitor, url: str, host: str) -> None:
    said = text_of(await owner.see(leads_to(await owner.send(page(owner), pingback_url=url))))
    assert "is no public address" in said
    assert host in said
    assert "PAYDESK_OUTBOUND_ALLOW" in said


@pytest.mark.parametrize(
    "url", ["https://shop.example/pb", "https://93.184.216.34/pb", "https://10.shop.example/pb", ""]
)
async def test_no_other_address_is_warned_of(owner: Visitor, url: str) -> None:
    said = text_of(await owner.see(leads_to(await owner.send(page(owner), pingback_url=url))))
    assert "Saved." in said
    assert "public address" not in said


@pytest.mark.parametrize("field", ["pingback_url", "test_pingback_url"])
@pytest.mark.parametrize(
    "url",
    ["shop.example", "ftp://shop.example", "javascript:alert(1)", "https://a:b@shop.example/", "https://", "http://x\x01y",
     "https://shop.example/" + "a" * 2100],
)  # fmt: skip
async def test_a_url_that_is_none_is_refused_at_its_field(owner: Visitor, field: str, url: str) -> None:
    answer = await owner.send(page(owner), **{field: url})
    assert answer.status_code == 400
    assert re.search(rf'id="f-{field}"[^>]*aria-invalid="true"', answer.text)


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


async def test_moving_the_clock_charges_a_renewal(owner: Visitor, seller: Seller, database: Database) -> None:
    terms = Terms("Tea", "tea", "USD", Decimal("10.00"), Period(1, "month"), None, 0)
    await seller.sell("A-1", terms=terms)
    answer = await owner.send(page(owner, "/clock"), period="31d")
    assert answer.status_code == 200
    assert "Renewed: 1" in text_of(answer)
    paid = await database.fetchval(
        "select count(*) from payment where merchant_id = $1 and captured_at is not null", merchant_id(owner)
    )
    assert paid == 2
    assert await audited(database, owner, "test_clock_moved") == 1
    assert "ahead of real time" in text_of(await owner.see(page(owner, "/clock")))


@pytest.mark.parametrize("period", ["", "0d", "5x", "-1d", "9999y", "1 d", "٣d"])
async def test_a_period_that_is_none_moves_nothing(owner: Visitor, database: Database, period: str) -> None:
    answer = await owner.send(page(owner, "/clock"), by=period)
    assert answer.status_code == 400
    assert 'id="f-by"' in answer.text
    assert await audited(database, owner, "test_clock_moved") == 0


async def test_test_data_go_and_the_clock_returns(owner: Visitor, seller: Seller, database: Database) -> None:
    await seller.sell("A-1")
    await owner.send(page(owner, "/clock"), period="1w")
    assert leads_to(await owner.send(page(owner, "/clock/reset"))) == page(owner, "/clock")
    assert await database.fetchval("select count(*) from payment where merchant_id = $1", merchant_id(owner)) == 0
    assert "ahead of real time" not in text_of(await owner.see(page(owner, "/clock")))
    assert await audited(database, owner, "test_side_reset") == 1


async def test_live_data_has_no_clock(owner: Visitor, database: Database) -> None:
    hidden = fields_of((await owner.see(page(owner, "/clock"))).text, page(owner, "/clock"))
    await owner.send("/account/security", f"{owner.merchant_path}/mode", live="1")
    await owner.web.post(f"{owner.merchant_path}/mode/look", data={**hidden, "live": "1"})
    assert "Live data has no test clock" in text_of(await owner.see(page(owner, "/clock")))
    for name in ("/clock", "/clock/reset"):
        answer = await owner.web.post(page(owner, name), data={**hidden, "by": "1d"})
        assert answer.status_code == 409
    assert await audited(database, owner, "test_clock_moved") == 0


async def test_a_refused_form_appears_with_its_reason(
    owner: Visitor, sign_up: SignUp, database: Database, vault: Vault, web: httpx.AsyncClient
) -> None:
    log = page(owner, "/refused")
    assert "No form was refused" in text_of(await owner.see(log))
    public, _ = await pair(owner, database, vault)
    assert (await order(web, public, "a wrong private key", "<b>A-7</b>")).status_code == 403
    shown = await owner.see(log)
    assert "403" in text_of(shown)
    assert "&lt;b&gt;A-7&lt;/b&gt;" in shown.text
    said = text_of(shown)
    assert "a value that was changed after signing" in said
    assert "description=A mug;merchant_order_id=<b>A-7</b>;sign_version=v2;" in said, "what was signed"
    assert "a wrong private key" not in said
    assert "every 5s" in shown.text
    part = await owner.see(log, **{"HX-Request": "true"})
    assert "<html" not in part.text
    assert "A-7" in part.text
    other = await sign_up("Other")
    assert (await other.see(log)).status_code == 404
    assert "A-7" not in (await other.see(page(other, "/refused"))).text


async def test_ignored_fields_are_shown_to_the_team(owner: Visitor, database: Database, sign_up: SignUp) -> None:
    path, shop = page(owner, "/ignored"), Shop(merchant_id(owner), False)
    assert "Every field that was sent is known." in text_of(await owner.see(path))
    await note_ignored(database, shop, SentWith.FORM, ["<b>amuont</b>"], now=utc_now())
    await note_ignored(database, shop, SentWith.DELIVERY, ["carrier_name"], now=utc_now())
    shown = await owner.see(path)
    assert "&lt;b&gt;amuont&lt;/b&gt;" in shown.text
    said = text_of(shown)
    assert "carrier_name" in said
    assert "Checkout form" in said
    assert "Delivery" in said
    other = await sign_up("Other")
    assert (await other.see(path)).status_code == 404
    assert "amuont" not in (await other.see(page(other, "/ignored"))).text


async def test_the_log_goes_on_page_by_page(owner: Visitor, database: Database) -> None:
    await database.execute(
        "insert into rejected_form (merchant_id, live, at, status, reason, fields)"
        " select $1, n % 2 = 0, now() - n * interval '1 second', 400, 'reason ' || n, '{}'"
        " from generate_series(1, 110) n",
        merchant_id(owner),
    )
    shown = await owner.see(page(owner, "/refused"))
    seen = re.findall(r"reason (\d+)", shown.text)
    assert seen == [str(n) for n in range(1, 100, 2)]
    older = re.search(r'href="([^"]+)" rel="next"', shown.text)
    assert older is not None
    rest = await owner.see(older[1])
    assert re.findall(r"reason (\d+)", rest.text) == ["101", "103", "105", "107", "109"]
    assert (await owner.see(page(owner, "/refused?before=9-9-9&before=x"))).status_code == 200


async def test_a_key_is_made_with_the_scopes_that_were_chosen_and_the_list_shows_them(
    owner: Visitor, database: Database
) -> None:
    assert "Everything: sign forms, read, and move money" in text_of(await owner.see(page(owner)))
    await rotate(owner, "24", ("sign", "read"))
    shown = text_of(await owner.see(page(owner)))
    assert "Everything:" not in shown
    assert "Sign checkout forms Read by the API" in " ".join(shown.split())
    scopes = "select scopes from merchant_key where merchant_id = $1 order by id desc limit 1"
    merchant_id = int(owner.merchant_path.rpartition("/")[2])
    assert sorted(await database.fetchval(scopes, merchant_id)) == ["read", "sign"]
    hidden = fields_of((await owner.see(page(owner, "/keys"))).text, page(owner, "/keys"))
    assert (await owner.web.post(page(owner, "/keys"), data={**hidden, "grace": "24"})).status_code == 400


async def test_a_key_that_was_made_in_test_mode_by_who_may_not_refund_moves_test_money_alone(
    owner: Visitor, join: Join, database: Database
) -> None:
    merchant_id = int(owner.merchant_path.rpartition("/")[2])
    developer = await join(owner, Role.developer)
    assert "moves test money alone" in text_of(await developer.see(page(developer, "/keys")))
    made = await rotate(developer)
    private = re.findall(r"\b[0-9a-f]{48}\b", made.text)[0]
    assert "Test money alone" in text_of(await owner.see(page(owner)))
    await set_back.went_live(database, merchant_id, ago=timedelta(days=1))
    called = {
        base: await owner.web.post(f"{base}/payment/1/refund", json={}, headers={"X-ApiKey": private})
        for base in ("", "/sandbox")
    }
    assert "lacks the scope move" in called[""].text
    assert "lacks the scope" not in called["/sandbox"].text
    assert (await owner.web.get("/api/v1/payments", headers={"X-ApiKey": private})).status_code == 200
    own = re.findall(r"\b[0-9a-f]{48}\b", (await rotate(owner)).text)[0]
    assert (
        "lacks the scope" not in (await owner.web.post("/payment/1/refund", json={}, headers={"X-ApiKey": own})).text
    ), "an owner's own key moves live money"


async def test_who_may_not_refund_makes_no_key_that_moves_money_once_the_shop_is_live(
    owner: Visitor, join: Join, database: Database
) -> None:
    merchant_id = int(owner.merchant_path.rpartition("/")[2])
    developer = await join(owner, Role.developer)
    at = page(owner, "/keys")
    await set_back.went_live(database, merchant_id, test_mode=True)
    shown = (await developer.see(at)).text
    assert 'value="move"' not in shown
    refused = await developer.web.post(at, data={**fields_of(shown, at), "grace": "24", "scope": ALL})
    assert refused.status_code == 403
    made = await developer.web.post(at, data={**fields_of(shown, at), "grace": "24", "scope": ["sign", "read"]})
    assert made.status_code == 200
