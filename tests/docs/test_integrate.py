import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from html import unescape
from pathlib import Path

import httpx
import msgspec
import pytest
from tests.docs.shops import SHOPS, RunningShop, running_shop
from tests.servers import Received, answering

from paydesk.core.money import Split
from paydesk.core.periods import Period
from paydesk.domain.deliveries.confirmations import ADDRESS_FIELDS
from paydesk.domain.deliveries.confirming import Result
from paydesk.domain.deliveries.delivery_status import DeliveryStatus, GoodsType
from paydesk.domain.pingbacks.payload import PaymentReport, ReversalReport, reversal_envelope
from paydesk.domain.subscriptions.lifecycle import begin, paid
from paydesk.domain.subscriptions.subscription_object import subscription_object
from paydesk.domain.subscriptions.subscription_terms import Package, Terms, Trial
from paydesk.web.api.deliveries import BODY
from paydesk.web.api.delivery_shapes import OneDelivery
from paydesk.web.api.refund_shapes import Refunded
from paydesk_client.signature import (
    CHECKOUT_FIELDS,
    Value,
    Version,
    canonical_string,
    encode_form,
    parse_form,
    pingback_signature,
    sign,
    signature_version,
    verify,
)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "integrate.md").read_text()
SNIPPETS = dict(re.findall(r"^`([\w.-]+)`\n\n```\w+\n(.*?)^```$", PAGE, re.M | re.S))
KEY = "9c4d4efcfe74317c5df7d564cfe9565t"
GOLDEN = {
    "api_key": "95b682bafc8837b1e80e5fe940cb5731",
    "amount": "5.00",
    "currency": "EUR",
    "description": "Golden Ticket",
    "merchant_order_id": "5d00c568c5b2b",
}
CLUB = {"recurring_name": "Coffee club", "recurring_sku_id": "club", "recurring_period": "1m"}
LINE_ITEMS = '[{"name":"Mug","unit_price":"2.00","quantity":2},{"name":"Tea","unit_price":"1.00"}]'
TRICKY: dict[str, Value] = {
    **GOLDEN,
    "description": "~ Köln & 'a+b' = 100% (!*) \\ <\"> $x",
    "email": "",
    "address": {"zip": "1", "city": "x y", "Area": "z"},
    "cart": [{"name": f"n{number}", "count": "2"} for number in range(11)],
}

HASHED_BY = {
    "php": ["php", "-r", 'require "paydesk.php"; echo paydesk_hash(json_decode($argv[1], true), $argv[2]);'],
    "node": [
        "node",
        "--input-type=module",
        "--eval",
        'import { paydeskHash } from "./paydesk.mjs"; const [fields, key] = process.argv.slice(1);'
        "process.stdout.write(paydeskHash(JSON.parse(fields), key));",
    ],
}


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All programs of the page, as a reader would have saved them."""
    path = tmp_path_factory.mktemp("shop")
    for name, code in SNIPPETS.items():
        (path / name).write_text(code)
    return path


def test_the_page_has_all_programs() -> None:
    assert set(SNIPPETS) == {
        *("checkout-v1.sh", "checkout-v2.sh", "paydesk.php", "shop.php"),
        *("shop.py", "club.py", "paydesk.mjs", "shop.mjs"),
    }


@pytest.mark.parametrize("language", [pytest.param(name, marks=needs(name)) for name in HASHED_BY])
@pytest.mark.parametrize(
    ("extra", "golden"), re.findall(r"^\| v[12], (?:no )?`(sign_version[=v12]*)` \| `(\w{64})` \|$", PAGE, re.M)
)
def test_the_hash_programs_give_the_golden_vectors(folder: Path, language: str, extra: str, golden: str) -> None:
    _, _, version = extra.partition("=")
    fields: dict[str, Value] = {**GOLDEN, **({"sign_version": version} if version else {})}
    assert sign(fields, KEY, signature_version(fields)) == golden
    assert hashed(folder, language, fields) == golden


@pytest.mark.parametrize("language", [pytest.param(name, marks=needs(name)) for name in HASHED_BY])
@pytest.mark.parametrize(
    ("heading", "more"),
    [
        ("A coupon in the form", {**CLUB, "recurring_coupon": "SPRING"}),
        ("Several of a thing", {**CLUB, "recurring_quantity": "3"}),
        ("Line items in the form", {"line_items": LINE_ITEMS}),
    ],
)
def test_the_hash_programs_give_the_vectors_of_what_is_switched_on(
    folder: Path, language: str, heading: str, more: dict[str, Value]
) -> None:
    part = PAGE[PAGE.index(f"### {heading}\n") :]
    vectors = re.findall(r"^- v[12], (?:no )?`(sign_version[=v12]*)`:\n  `(\w{64})`$", part, re.M)[:3]
    assert [extra for extra, _ in vectors] == ["sign_version", "sign_version=v1", "sign_version=v2"]
    for extra, vector in vectors:
        _, _, version = extra.partition("=")
        fields: dict[str, Value] = {**GOLDEN, **more, **({"sign_version": version} if version else {})}
        assert sign(fields, KEY, signature_version(fields)) == vector
        assert hashed(folder, language, fields) == vector
    assert canonical_string(fields, "v2") in part.replace("\n", "")


def test_the_page_shows_three_golden_vectors() -> None:
    assert len(re.findall(r"`\w{64}`", PAGE[PAGE.index("### The hash") : PAGE.index("### Errors")])) == 3


@pytest.mark.parametrize("language", [pytest.param(name, marks=needs(name)) for name in HASHED_BY])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_hash_programs_agree_with_ours_on_tricky_fields(folder: Path, language: str, version: Version) -> None:
    flat = {name: value for name, value in TRICKY.items() if version == "v1" or isinstance(value, str)}
    fields = {**flat, "sign_version": version}
    assert hashed(folder, language, fields) == sign(fields, KEY, version)


@pytest.mark.parametrize("language", [pytest.param(name, marks=needs(name)) for name in HASHED_BY])
@pytest.mark.parametrize(
    "fields",
    [
        {"sign_version": "v2", "description": "Gift for x;status=order_shipped"},
        {"sign_version": "v2", "description": "x;anything=1"},
        {"sign_version": "v2", "a": {"amount": "1"}},
        {"sign_version": "v2", "0": "1"},
        {"sign_version": "v1", "a=1&b": "1"},
        {"a b": "1"},
        {"a": {"b=c": "1"}},
    ],
    ids=str,
)
def test_the_hash_programs_sign_nothing_that_reads_in_two_ways(
    folder: Path, language: str, fields: dict[str, Value]
) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        hashed(folder, language, {**GOLDEN, **fields})
    assert "sign" in failed.value.stderr + failed.value.stdout


def hashed(folder: Path, language: str, fields: dict[str, Value]) -> str:
    command = [*HASHED_BY[language], *(["--"] if language == "php" else []), json.dumps(fields), KEY]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@needs("curl")
@needs("openssl")
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_curl_programs_post_a_valid_form(folder: Path, version: Version) -> None:
    environment = {**os.environ, "PUBLIC_KEY": GOLDEN["api_key"], "PRIVATE_KEY": KEY}
    program = ["sh", "-e", str(folder / f"checkout-{version}.sh")]
    with answering(303) as (address, posted):
        environment["PAY_URL"] = f"{address}/sandbox"
        ran = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    (came,) = posted
    form = parse_form(came.body)
    assert ran.stdout.startswith("HTTP/1.0 303")
    assert came.path == "/sandbox/payment/form"
    assert signature_version(form) == version
    assert form["success_url"] == "https://shop.example/thanks"
    assert verify(form, form["hash"], KEY, version).variant == "canonical"


@pytest.fixture(params=[pytest.param(name, marks=needs(command[0])) for name, command in SHOPS.items()])
def shop(request: pytest.FixtureRequest, folder: Path) -> Iterator[RunningShop]:
    with running_shop(SHOPS[request.param], folder, PUBLIC_KEY="public<&>", PRIVATE_KEY=KEY) as running:
        yield running


def payment(age: int = 0, **changes: Value) -> dict[str, Value]:
    order: dict[str, Value] = {"id": 13330, "merchant_order_id": "A-7", "status": "successful", "fees": Decimal("0.45")}
    return {"event": "payment", "payment_order": order, "with_risk_check": False, **changes} | {
        "pingback_ts": int(time.time()) - age
    }


def as_json(payload: dict[str, Value]) -> bytes:
    return json.dumps(payload, default=float).encode()


def v1(body: bytes, key: str = KEY) -> tuple[bytes, dict[str, str]]:
    return body, {"X-ApiKey": key}


def v2(body: bytes, key: str = KEY, version: str = "v2") -> tuple[bytes, dict[str, str]]:
    return body, {"X-Service-Signature-Version": version, "X-Service-Signature": pingback_signature(body, key)}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_shops_form_carries_a_valid_hash(shop: RunningShop, version: Version) -> None:
    html = httpx.get(f"{shop.url}/buy", params={"order": "A&'7~", "version": version}).text
    fields: dict[str, Value] = {
        name: unescape(value) for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', html)
    }
    assert fields["merchant_order_id"] == "A&'7~"
    assert (fields["api_key"], fields["sign_version"]) == ("public<&>", version)
    assert fields["pingback_url"] == f"{shop.url}/pingback"
    assert 'action="http://127.0.0.1:8000/sandbox/payment/form"' in html
    assert verify(fields, fields["hash"], KEY, version).variant == "canonical"


def test_the_shop_believes_genuine_pingbacks(shop: RunningShop) -> None:
    body = as_json(payment())
    assert shop.told(*v1(body)) == (200, "ok")
    assert shop.told(*v2(body)) == (200, "ok")
    form, key = v1(encode_form(payment()).encode())
    assert shop.told(form, {**key, "Content-Type": "application/x-www-form-urlencoded"}) == (200, "ok")
    assert shop.told(*v2(as_json(payment(event="subscription_stopped")))) == (200, "ok")
    assert shop.paid() == ["A-7"] * 3


def test_the_shop_refuses_forged_pingbacks(shop: RunningShop) -> None:
    body = as_json(payment())
    _, of_another_body = v2(b"{}")
    forged = {
        "no headers": (body, {}),
        "v1, wrong key": v1(body, "guess"),
        "v1, empty key": v1(body, ""),
        "v2, wrong key": v2(body, "guess"),
        "v2, another body's signature": (body, of_another_body),
        "v2, no signature": (body, {"X-Service-Signature-Version": "v2", "X-ApiKey": KEY}),
        "v2, odd signature": (body, {"X-Service-Signature-Version": "v2", "X-Service-Signature": "f"}),
        "unknown version": v2(body, version="v3"),
        "empty body": v2(b""),
        "v2, stale": v2(as_json(payment(age=400))),
        "v1, stale": v1(as_json(payment(age=400))),
        "v2, from the future": v2(as_json(payment(age=-400))),
        "v2, no time": v2(b'{"event":"payment"}'),
        "v2, no JSON": v2(b"{"),
        "v2, no object": v2(b"null"),
    }
    answers = {name: shop.told(*pingback) for name, pingback in forged.items()}
    assert answers == dict.fromkeys(forged, (200, "NOK"))
    assert shop.paid() == []


def of_club(event: str = "payment", number: int = 1, **changes: Value) -> bytes:
    """A pingback of a member's subscription; `number` is which of its payments."""
    subscription: dict[str, Value] = {"id": 52, "recurring_id": 13330}
    if event != "payment":
        return as_json({"event": event, "subscription": subscription, "pingback_ts": int(time.time())})
    reference = "ada-5f3a" if number == 1 else f"ada-5f3a:{number}"
    order: dict[str, Value] = {"id": 13329 + number, "merchant_order_id": reference, "status": "successful"}
    paid: dict[str, Value] = {"paid_amount": Decimal("10.0"), "paid_currency": "EUR", **changes}
    named: dict[str, Value] = {**subscription, "init_merchant_order_id": "ada-5f3a"}
    return as_json(payment(payment_order={**order, **paid}, subscription=named))


@pytest.fixture
def club(folder: Path, tmp_path: Path) -> Iterator[tuple[RunningShop, list[Received]]]:
    """The club of the page, and what Paydesk is asked by it."""
    (tmp_path / "club.py").write_text((folder / "club.py").read_text())
    with answering() as (address, asked):
        keys = {"PUBLIC_KEY": "public<&>", "PRIVATE_KEY": KEY, "PAY_URL": f"{address}/sandbox"}
        with running_shop([sys.executable, "club.py"], tmp_path, **keys) as running:
            yield running, asked


def member(club: RunningShop) -> str:
    return httpx.get(club.url, params={"name": "ada"}).text


def test_the_club_asks_for_a_subscription(club: tuple[RunningShop, list[Received]]) -> None:
    html = httpx.get(f"{club[0].url}/join", params={"name": "ada&<b>"}).text
    fields: dict[str, Value] = {
        name: unescape(value) for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', html)
    }
    assert str(fields["merchant_order_id"]).startswith("ada&<b>-")
    assert (fields["amount"], fields["recurring_period"]) == ("10.00", "1m")
    assert verify(fields, str(fields["hash"]), KEY, "v2").variant == "canonical"


def test_the_club_counts_each_payment_once_and_ends_with_the_subscription(
    club: tuple[RunningShop, list[Received]],
) -> None:
    running, asked = club
    assert "is no member" in member(running)
    for number in (1, 1, 2):
        assert running.told(*v2(of_club(number=number))) == (200, "ok")
    assert running.paid() == ["ada-5f3a", "ada-5f3a:2"]
    assert "is a member, payments: 2" in member(running)
    assert running.told(*v2(of_club(number=3), "guess")) == (200, "NOK")
    assert running.told(*v2(of_club(number=3, paid_amount=Decimal("0.01")))) == (200, "ok")
    assert "payments: 2" in member(running), "that was not what was agreed"
    left = httpx.post(f"{running.url}/leave", data={"name": "ada"}).text
    assert "until the end of the month" in left
    (call,) = asked
    assert call.path == "/sandbox/api/v1/subscriptions/52/cancel"
    assert json.loads(call.body)["at"] == "period_end"
    assert running.told(*v2(of_club("subscription_cancelled"))) == (200, "ok")
    assert "is no member" in member(running)
    assert running.told(*v2(of_club(number=2))) == (200, "ok")
    assert "is no member" in member(running), "a late copy opens nothing again"


def test_a_membership_whose_end_is_told_first_stays_closed(club: tuple[RunningShop, list[Received]]) -> None:
    running, _ = club
    assert running.told(*v2(of_club("subscription_stopped"))) == (200, "ok")
    assert running.told(*v2(of_club())) == (200, "ok")
    assert "is no member" in member(running)


def test_the_thank_you_page_answers(shop: RunningShop) -> None:
    assert "Thank you" in httpx.get(f"{shop.url}/thanks").text


def test_every_field_of_the_checkout_request_is_explained() -> None:
    table = PAGE[PAGE.index("## The form, field by field") : PAGE.index("### The hash")]
    assert set(re.findall(r"`([a-z_]+)`", table)) >= CHECKOUT_FIELDS | {"first_name", "last_name", "city", "zip"}


def samples() -> list[dict[str, object]]:
    return [json.loads(text, parse_float=Decimal) for text in re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)]


def test_the_sample_error_has_exactly_the_four_keys() -> None:
    assert list(samples()[0]) == ["success", "type", "message", "code"]


def test_the_sample_pingback_adds_up_and_is_explained() -> None:
    pingback = samples()[1]
    order = pingback["payment_order"]
    assert isinstance(order, dict)
    assert order["paid_amount"] == order["merchant_net_revenue"] + order["merchant_rolling_reserve"] + order["fees"]
    explained = set(re.findall(r"`(?:\w+\.)?(\w+)`", PAGE[PAGE.index("| `event` |") : PAGE.index("Verify before")]))
    assert explained >= {*pingback, *order} - {"payment_order"}


def test_the_sample_renewal_has_the_fields_that_are_sent() -> None:
    terms = Terms(
        "Coffee club", "club", "EUR", Decimal(10), Period(6, "month"), Trial(Decimal(30), Period(1, "month")), 0
    )
    begun = begin(
        Package(7, 12, terms, 40),
        merchant_id=1,
        live=True,
        subscription_id=52,
        payment_id=13330,
        merchant_order_id="A-9",
        email="ada@example.com",
        time_zone="UTC",
        at=datetime(2026, 11, 20, 9, 44, 16, tzinfo=UTC),
    )
    renewed = paid(begun, 1, at=datetime(2026, 12, 20, 9, 44, 16, tzinfo=UTC))
    pingback = samples()[2]
    assert pingback["subscription"] == subscription_object(renewed, with_init=True)
    order = pingback["payment_order"]
    assert isinstance(order, dict)
    assert order["merchant_order_id"] == f"{renewed.init_merchant_order_id}:2"
    assert order["paid_amount"] == order["merchant_net_revenue"] + order["merchant_rolling_reserve"] + order["fees"]


def test_the_sample_refund_pingback_is_what_is_sent() -> None:
    report = PaymentReport(
        payment_id=13330,
        merchant_order_id="A-9",
        currency="EUR",
        split=Split(Decimal(5), Decimal("4.3"), Decimal("0.25"), Decimal("0.45")),
        at=datetime(2026, 11, 20, 9, 44, 16, tzinfo=UTC),
        first_name="",
        last_name="",
        username="",
        country="",
        email="",
    )
    reversal = ReversalReport(
        "partial_refund", "reversal_refunded_partially", 881, refund_amount=Decimal(4), total_refunded_amount=Decimal(4)
    )
    (shown,) = (sample for sample in samples() if sample.get("event") == "partial_refund")
    del shown["pingback_ts"]
    assert shown == json.loads(reversal_envelope(report, reversal, one_time=True), parse_float=Decimal)


def test_the_sample_refund_has_the_fields_that_are_answered() -> None:
    (answered,) = (sample["data"] for sample in samples() if "refund_amount" in str(sample.get("data")))
    assert isinstance(answered, dict)
    assert list(answered) == list(Refunded.__struct_fields__)


def test_every_field_of_a_delivery_confirmation_is_explained() -> None:
    shipping = PAGE.partition("\n## Goods that are shipped\n")[2].partition("\n## ")[0]
    for name in (*BODY["properties"], *ADDRESS_FIELDS, *DeliveryStatus, *GoodsType, *Result):
        assert f"`{name}`" in shipping, name


def test_the_sample_delivery_has_the_fields_that_are_answered() -> None:
    shipping = PAGE.partition("\n## Goods that are shipped\n")[2].partition("\n## ")[0]
    (sample,) = re.findall(r"^```json\n(.*?)^```$", shipping, re.M | re.S)
    read = msgspec.json.decode(sample, type=OneDelivery)
    assert json.loads(msgspec.json.encode(read)) == json.loads(sample)
