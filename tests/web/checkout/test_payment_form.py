from __future__ import annotations

import base64
import html
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import quote_plus, unquote, urlencode
from xml.etree import ElementTree

import httpx
import pytest
from pydantic import SecretStr
from tests.web.conftest import standing_still

from paydesk.adapters.vault import Vault, generate_key_setting
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.ignored_fields import SentWith, ignored_fields
from paydesk.domain.merchants.merchant import Merchant, change_merchant, create_merchant
from paydesk.domain.merchants.refused_forms import rejected_forms
from paydesk.domain.merchants.shop import Shop
from paydesk.settings import Settings
from paydesk_client import Gateway
from paydesk_client.signature import encode_form, sign

OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]
SignedForm = Callable[..., dict[str, Any]]
CountRows = Callable[[str], Awaitable[int]]

FORM = "/payment/form"
FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}


async def post(web: httpx.AsyncClient, form: dict[str, Any], url: str = FORM, **headers: str) -> httpx.Response:
    return await web.post(url, content=encode_form(form), headers={**FORM_TYPE, **headers})


async def refused(web: httpx.AsyncClient, form: dict[str, Any], url: str = FORM) -> tuple[int, str, str]:
    """Post a form that must be refused, as a browser and as a program;
    the status, the message and the page's text.
    """
    page = await post(web, form, url)
    answer = await post(web, form, url, Accept="application/json")
    body = answer.json()
    assert list(body) == ["success", "type", "message", "code"]
    assert (body["success"], body["type"], body["code"]) == (False, "error", answer.status_code)
    assert page.status_code == answer.status_code
    assert page.headers["content-type"].startswith("text/html")
    text = html.unescape(page.text)
    assert body["message"] in text
    return answer.status_code, body["message"], text


async def accepted(web: httpx.AsyncClient, form: dict[str, Any], url: str = FORM) -> str:
    """Post a valid form; where it leads to."""
    answer = await post(web, form, url)
    assert answer.status_code == 303, html.unescape(answer.text)
    return answer.headers["location"]


async def test_a_form_whose_key_can_t_be_opened_is_a_short_break_and_an_alarm(
    open_web: OpenWeb, signed_form: SignedForm, merchant: Merchant, database: Database
) -> None:
    web = await open_web(vault_keys=SecretStr(generate_key_setting()))
    page = await post(web, signed_form())
    assert (page.status_code, page.headers["retry-after"]) == (503, "60")
    assert "The payment service is taking a short break" in page.text
    assert "vault" not in page.text.lower()
    answer = await post(web, signed_form(), Accept="application/json")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "60")
    assert "nothing was begun and nobody charged" in answer.json()["message"]
    assert "vault" not in answer.text.lower()
    (alarm,) = await database.fetch(
        "select kind, reason, times from alarm where merchant_id = $1 and settled_at is null", merchant.id
    )
    assert (alarm["kind"], alarm["times"]) == ("key_unreadable", 2)
    assert "put it back at the end of PAYDESK_VAULT_KEYS" in alarm["reason"]


@pytest.fixture
async def golden_key(database: Database, vault: Vault) -> dict[str, str]:
    """The golden vectors' merchant; its keys exist once in a test run."""
    public, private = "95b682bafc8837b1e80e5fe940cb5731", "9c4d4efcfe74317c5df7d564cfe9565t"
    if await database.fetchval("select 1 from merchant_key where public_key = $1", public) is None:
        await create_merchant(
            database, vault, name="Gold", email="g@shop.example", public_key=public, private_key=private, now=utc_now()
        )
    return {"api_key": public}


@pytest.mark.parametrize(
    ("version", "digest"),
    [
        ({}, "82d34f95a4c7ea8c38c2d25ae5a126560f369be6944d3113fb55f682ae131314"),
        ({"sign_version": "v1"}, "87b3cebde91b94547e80364bad37d2dfd0cb44a0915373bdf500b6f0eddaf59d"),
        ({"sign_version": "v2"}, "e77ff5cb9a08d9dea4454ab14b462a43f3fd3f0af6258baa43d260e0c56d79d3"),
    ],
    ids=["no version", "v1", "v2"],
)
async def test_the_golden_vectors_lead_to_a_checkout(
    web: httpx.AsyncClient, golden_key: dict[str, str], version: dict[str, str], digest: str
) -> None:
    form = {"amount": "5.00", "currency": "EUR", "description": "Golden Ticket", "merchant_order_id": "5d00c568c5b2b"}
    form |= golden_key | version | {"hash": digest}
    assert (await web.get(await accepted(web, form))).status_code == 200
    status, message, _ = await refused(web, {**form, "amount": "5.01"})
    assert (status, message.split(":")[0]) == (403, "hash is wrong")


@pytest.mark.parametrize("version", [None, "", "v1", "v2"])
async def test_a_signed_form_leads_to_a_checkout_that_needs_no_cookie(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows, version: str | None
) -> None:
    path = await accepted(web, signed_form(sign_version=version, module_source="plugin", email="ada@example.com"))
    assert path.startswith("/checkout/t")
    for _ in range(2):
        page = await web.get(path)
        assert page.status_code == 200
        assert "set-cookie" not in page.headers
        assert "Golden Ticket" in page.text
        assert "ada@example.com" in page.text
    assert await count_rows("checkout") == 1
    assert await count_rows("payment") == 0


@pytest.mark.parametrize(
    ("variant", "more"),
    [
        ("~ raw", {"note": "a~b"}),
        ("Java", {"note": "it's (really) new!"}),
        ("lower-case order", {"Zebra": "1", "apple": "2"}),
        ("empty left out", {"email": "", "pingback_url": ""}),
    ],
)
async def test_what_clients_in_the_field_hash_differently_is_accepted(
    web: httpx.AsyncClient, gateway: Gateway, signed_form: SignedForm, variant: str, more: dict[str, str]
) -> None:
    form = signed_form(**more)
    fields = {name: value for name, value in form.items() if name != "hash"}
    if variant == "empty left out":
        form["hash"] = sign({name: value for name, value in fields.items() if value}, gateway.private_key)
    else:
        order = str.lower if variant == "lower-case order" else str
        raw = {"~ raw": "~", "Java": "+!'()~"}.get(variant, "")
        pairs = [
            f"{name}={quote_plus(fields[name], safe='' if 'url' in name else raw)}"
            for name in sorted(fields, key=order)
        ]
        form["hash"] = sha256(("&".join(pairs) + gateway.private_key).encode()).hexdigest()
    await accepted(web, form)


@pytest.mark.parametrize("name", ["api_key", "hash"])
async def test_a_form_without_its_key_or_hash_is_malformed(
    web: httpx.AsyncClient, signed_form: SignedForm, name: str
) -> None:
    form = {key: value for key, value in signed_form().items() if key != name}
    status, message, page = await refused(web, form)
    assert (status, message) == (400, f"{name} is missing")
    assert f"<code>{name}</code>" in page


async def test_an_unknown_key_is_not_found(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    status, message, _ = await refused(web, signed_form() | {"api_key": "no-such-key"})
    assert status == 404
    assert "api_key is unknown: what was sent has 11 characters" in message


@pytest.mark.parametrize("kind", ["this merchant's", "nobody's"])
async def test_a_private_key_sent_as_api_key_is_never_shown(
    web: httpx.AsyncClient, signed_form: SignedForm, gateway: Gateway, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    key = gateway.private_key if kind == "this merchant's" else secrets.token_hex(24)
    for base in (FORM, f"/sandbox{FORM}"):
        status, message, page = await refused(web, signed_form() | {"api_key": key}, base)
        assert status == 404
        assert ("api_key is a private key" in message) is (key == gateway.private_key)
        assert key[:8] not in page
    assert key[:8] not in capsys.readouterr().out


async def test_the_merchant_sees_what_was_signed_of_a_form_and_never_the_key(
    web: httpx.AsyncClient, signed_form: SignedForm, gateway: Gateway, database: Database, merchant: Merchant
) -> None:
    for base in (FORM, f"/sandbox{FORM}"):
        await refused(web, signed_form() | {"amount": "0.01", "note": gateway.private_key}, base)
        await refused(web, signed_form() | {"amount": "0.01"}, base)
    kept = await rejected_forms(database, merchant.id)
    assert gateway.private_key not in f"{kept}"
    assert all("amount=0.01&api_key=" in one.hashed for one in kept if one.hashed)
    assert [bool(one.hashed) for one in kept] == [True, True, False, False] * 2


@pytest.mark.parametrize(
    ("fields", "culprit"),
    [
        ({"a": {"amount": "100.00"}}, "a[amount]"),
        ({"description": "Nice;amount=1.00;"}, "description"),
        ({"a": {"b": "1"}}, "a[b]"),
        ({"0": "1"}, '"0"'),
        ({"success_url": "https://shop.example/;x=1"}, ";x="),
    ],
)
async def test_a_v2_form_that_reads_in_two_ways_is_refused_whatever_its_hash(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows, fields: dict[str, Any], culprit: str
) -> None:
    form = {**signed_form(**fields), "sign_version": "v2"}
    status, message, _ = await refused(web, form)
    assert status == 400
    assert culprit in message
    assert await count_rows("checkout") == 0
    await accepted(web, signed_form(**fields))


@pytest.mark.parametrize("name", ["x;amount", "a=b", "a&b", "a%62", "a+b", "a b", "a\u00a0b", "a[b=c]", "a\n"])
@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_name_that_could_be_written_like_two_is_refused_in_every_version(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows, name: str, version: str
) -> None:
    body = urlencode({**signed_form(), "sign_version": version, name: "1"}).encode()
    answer = await web.post("/payment/form", content=body, headers=FORM_TYPE | {"Accept": "application/json"})
    assert answer.status_code == 400
    assert "field name" in answer.json()["message"]
    assert await count_rows("checkout") == 0


def merged(form: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """What a customer makes of a signed form: neighbouring fields become one of a name
    that nobody knows.
    """
    kept = {name: value for name, value in form.items() if name not in names}
    head = "&".join(f"{name}={quote_plus(str(form[name]))}" for name in names[:-1])
    return {**kept, f"{head}&{names[-1]}": form[names[-1]]}


@pytest.mark.parametrize(
    "names",
    [
        ["recurring_trial_amount", "recurring_trial_period"],
        ["recurring_name", "recurring_period", "recurring_sku_id", "recurring_trial_amount", "recurring_trial_period"],
        ["pingback_url", "recurring_name"],
        ["pingback_url", "sign_version"],
    ],
    ids=lambda names: names[0],
)
async def test_signed_fields_are_not_lost_in_one_unknown_name(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows, names: list[str]
) -> None:
    form = signed_form(
        **{"recurring_name": "Club", "recurring_period": "6m", "recurring_sku_id": "club"},
        **{"recurring_trial_amount": "30.00", "recurring_trial_period": "1m", "sign_version": "v1"},
        pingback_url="https://shop.example/pb",
    )
    body = urlencode(merged(form, names)).encode()
    answer = await web.post("/payment/form", content=body, headers=FORM_TYPE)
    assert answer.status_code == 400
    assert await count_rows("checkout") == 0
    await accepted(web, form)


async def test_a_form_can_not_be_meant_for_another_door_too(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows
) -> None:
    status, message, _ = await refused(web, {**signed_form(), "public_key": "x"})
    assert (status, await count_rows("checkout")) == (400, 0)
    assert "send one of them" in message


async def test_nested_fields_are_signed_in_v2(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    form = signed_form(sign_version="v2", shipping_address={"country_code": "GB", "city": "York"})
    await accepted(web, form)
    form["shipping_address"]["city"] = "Leeds"
    assert (await post(web, form)).status_code == 403


@pytest.mark.parametrize(
    ("content", "type_", "status"),
    [
        (b"{}", "application/json", 400),
        (b"a=b", "", 400),
        (b"--x\r\n", "multipart/form-data; boundary=x", 400),
        (b"api_key=%ff", "application/x-www-form-urlencoded", 400),
        (b"api_key=a&api_key=b", "application/x-www-form-urlencoded", 400),
        (b"a=1&a[b]=2", "application/x-www-form-urlencoded", 400),
        (b"a[b[=1", "application/x-www-form-urlencoded", 400),
        (b"&".join(b"f%d=1" % n for n in range(201)), "application/x-www-form-urlencoded", 400),
        (b"a=" + b"x" * (64 * 1024), "application/x-www-form-urlencoded", 413),
        (b"a=" + b"x" * (64 * 1024 - 2), "Application/X-WWW-Form-URLencoded; charset=UTF-8", 400),
    ],
)
async def test_a_body_that_is_no_form_is_refused(
    web: httpx.AsyncClient, content: bytes, type_: str, status: int
) -> None:
    headers = {"Content-Type": type_} if type_ else {}
    for accept in ("text/html", "application/json"):
        answer = await web.post(FORM, content=content, headers={**headers, "Accept": accept})
        assert answer.status_code == status
        assert answer.headers["content-type"].startswith(accept)


async def test_other_methods_are_told_what_is_allowed(web: httpx.AsyncClient) -> None:
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
        answer = await web.request(method, FORM)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    answer = await web.get(FORM, headers={"Accept": "application/json"})
    assert answer.json() == {"success": False, "type": "error", "message": "Method Not Allowed", "code": 405}


async def test_the_limit_of_forms_counts_one_client_of_one_merchant(
    open_web: OpenWeb, signed_form: SignedForm, database: Database, vault: Vault, settings: Settings, merchant: Merchant
) -> None:
    wire = standing_still()
    web = await open_web(forms_per_minute=3, wire=wire)
    for _ in range(3):
        await accepted(web, signed_form())
    for accept in ("text/html", "application/json"):
        answer = await post(web, signed_form(), Accept=accept)
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    elsewhere = await open_web(forms_per_minute=3, address="192.0.2.11", wire=wire)
    await accepted(elsewhere, signed_form())
    other = await create_merchant(database, vault, name="Other", email="o@shop.example", now=utc_now())
    form = Gateway(other.public_key, other.private_key).payment_form().build_parameters(signed_form())
    await accepted(web, form)
    assert [one.status for one in await rejected_forms(database, merchant.id)] == [429], "one line is enough"


async def test_a_forged_forwarding_header_does_not_help_and_a_trusted_proxys_counts(
    open_web: OpenWeb, signed_form: SignedForm
) -> None:
    async def ask(web: httpx.AsyncClient, forwarded: str) -> int:
        return (await post(web, signed_form(), **{"X-Forwarded-For": forwarded})).status_code

    wire, trusted = standing_still(), "198.51.100.0/24"
    direct = await open_web(forms_per_minute=1, address="198.51.100.1", wire=wire)
    assert await ask(direct, "203.0.113.1") == 303
    assert await ask(direct, "203.0.113.2") == 429
    behind = await open_web(forms_per_minute=1, address="198.51.100.2", trusted_proxies=trusted, wire=wire)
    assert await ask(behind, "203.0.113.3") == 303
    assert await ask(behind, "203.0.113.4") == 303
    assert await ask(behind, "6.6.6.6, 203.0.113.4") == 429, "what a client wrote itself stands before the proxy's"
    assert await ask(behind, "203.0.113.4, 198.51.100.9") == 429, "a second trusted proxy is passed over"


async def test_fields_of_plugins_are_ignored_and_their_names_shown(
    web: httpx.AsyncClient, database: Database, merchant: Merchant, shop: Shop, signed_form: SignedForm
) -> None:
    more = {
        "module_source": "plugin",
        "amuont": "9.99",
        "zip": "N1",
        "city": "London",
        "quantity": "2",
        "country": "GB",
    }
    await accepted(web, signed_form(**more))
    await refused(web, signed_form(amount="x", refused_field="1"))
    await refused(web, {**signed_form(forged_field="1"), "hash": "0" * 64})
    found = await ignored_fields(database, shop)
    assert sorted(one.name for one in found) == ["amuont", "module_source"]
    assert {one.sent_with for one in found} == {SentWith.FORM}
    assert "9.99" not in repr(found)


async def test_rejections_are_logged_for_the_programmer_without_card_numbers_or_nul(
    web: httpx.AsyncClient, database: Database, merchant: Merchant, signed_form: SignedForm
) -> None:
    secrets_typed = {"note": "4242 4242-4242 4242", "pan": "4242.4242.4242.4242", "nested": {"a": "5555555555554444"}}
    await refused(web, signed_form(amount="4242424242424242", **secrets_typed))
    await refused(web, signed_form(nul="a\x00b", long="x" * 5000, **{f"n{n}": "v" for n in range(150)}))
    logged = await rejected_forms(database, merchant.id)
    assert [one.status for one in logged] == [400] * 4
    assert all(not one.live for one in logged)
    typed = repr([one.reason for one in logged] + [{**one.fields, "hash": "", "api_key": ""} for one in logged])
    assert "4242" not in typed
    assert "5555" not in typed
    assert "[digits]" in typed
    assert all(len(one.fields) <= 60 for one in logged)
    assert all(len(value) <= 200 for one in logged for value in one.fields.values())


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("https://shop.example/thanks?a=1&b=%20#done", None),
        ("https://shop.example/{order}/<x>|^`\\\"'!$()*,;:@[]~%", None),
        ("HTTPS://Shop.Example", None),
        ("http://[::1]:8080/", None),
        ("https://shop.example/thank you", "https://shop.example/thank%20you"),
        ("https://shop.example/grüße?ß=ü", "https://shop.example/gr%C3%BC%C3%9Fe?%C3%9F=%C3%BC"),
    ],
)
async def test_after_paying_the_customer_goes_to_success_url_exactly_as_given(
    web: httpx.AsyncClient, signed_form: SignedForm, url: str, location: str | None
) -> None:
    path = await accepted(web, signed_form(success_url=url))
    card = {"email": "a@b.example", "number": "4242424242424242", "expiry": "12/30", "cvc": "123"}
    paid = await web.post(f"{path}/pay", data={**card, "holder": "Ada Lovelace", "country": "GB"})
    assert (paid.status_code, paid.headers["location"]) == (303, location or url)


async def test_a_qr_code_for_a_phone_names_the_checkout(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    form = signed_form(payment_flow="user_qr")
    answer = await post(web, form, Accept="application/json")
    assert answer.status_code == 200
    body = answer.json()
    assert body["success"] is True
    url = body["data"]["checkout_url"]
    assert url.startswith("http://pay.test/checkout/")
    assert (await web.get(url)).status_code == 200
    kind, _, picture = body["data"]["qr_code"].partition(",")
    assert kind.startswith("data:image/svg+xml")
    drawn = base64.b64decode(picture) if "base64" in kind else unquote(picture).encode()
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    sandboxed = await post(web, form, "/sandbox/payment/form", Accept="application/json")
    assert sandboxed.json()["data"]["checkout_url"].startswith("http://pay.test/sandbox/checkout/")
    assert (await post(web, form)).status_code == 303, "a browser is led to the page"


# Wrong hashes


async def test_test_mode_shows_what_was_hashed_and_the_suspect_but_never_the_key(
    web: httpx.AsyncClient, merchant: Merchant, signed_form: SignedForm, count_rows: CountRows
) -> None:
    form = signed_form(amount="10.00") | {"amount": "10"}
    status, message, page = await refused(web, form)
    assert status == 403
    assert message.startswith("hash is wrong")
    assert "amount=10&api_key=" in page
    assert '"amount" was reformatted' in page
    assert merchant.private_key not in page
    assert await count_rows("checkout") == 0
    assert await count_rows("rejected_form") == 2


async def test_a_live_form_with_a_wrong_hash_is_told_no_more_than_that(
    web: httpx.AsyncClient, database: Database, merchant: Merchant, signed_form: SignedForm
) -> None:
    await change_merchant(database, merchant.id, test_mode=False)
    status, _, page = await refused(web, signed_form() | {"amount": "1.00"})
    assert status == 403
    assert "hashed exactly this string" not in page


async def test_a_wrong_hash_is_found_out_before_anything_else_is_told(
    web: httpx.AsyncClient, signed_form: SignedForm
) -> None:
    assert (await refused(web, signed_form(amount="x") | {"hash": secrets.token_hex(32)}))[0] == 403


# The same request, other requests, and time


async def test_the_same_request_returns_to_the_same_checkout_in_whatever_order_its_fields_come(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows
) -> None:
    form = signed_form()
    paths = {await accepted(web, form), await accepted(web, form), await accepted(web, dict(reversed(form.items())))}
    assert len(paths) == 1
    assert await count_rows("checkout") == 1
    other = await accepted(web, signed_form(merchant_order_id=form["merchant_order_id"], amount="11.00"))
    assert other not in paths


async def test_a_checkout_expires_after_24_hours_and_opens_again_when_the_shop_asks_anew(
    open_web: OpenWeb, signed_form: SignedForm
) -> None:
    clock = [utc_now()]

    def at(moment: Callable[[], datetime]) -> Callable[[Any], Any]:
        return lambda services: replace(services, now=moment)

    web = await open_web(wire=at(lambda: clock[0]))
    form = signed_form()
    path = await accepted(web, form)
    clock[0] += timedelta(hours=24) - timedelta(seconds=1)
    assert (await web.get(path)).status_code == 200
    clock[0] += timedelta(seconds=1)
    for answer in (await web.get(path), await web.post(f"{path}/pay", data={}), await web.get(f"{path}/result")):
        assert answer.status_code == 410
        assert "https://shop.example/" in answer.text, "a way back to the shop"
    assert await accepted(web, form) == path
    assert (await web.get(path)).status_code == 200
