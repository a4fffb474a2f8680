import json
from collections.abc import Callable
from decimal import Decimal

import pytest

from paydesk_client import Gateway, InvalidPingback
from paydesk_client.signature import pingback_signature

KEY = "9c4d4efcfe74317c5df7d564cfe9565t"
NOW = 1_562_838_308
BODY = b'{"event":"payment","payment_order":{"id":13330,"fees":0.2703},"pingback_ts":1562838308}'
JSON = {"Content-Type": "application/json"}


def gateway(now: float = NOW, prefix: str = "X-Service") -> Gateway:
    return Gateway("public", KEY, header_prefix=prefix, clock=lambda: now)


def v1(body: bytes = BODY, key: str = KEY) -> tuple[bytes, dict[str, str]]:
    return body, {**JSON, "X-ApiKey": key}


def v2(body: bytes = BODY, key: str = KEY, prefix: str = "X-Service") -> tuple[bytes, dict[str, str]]:
    signed = {f"{prefix}-Signature-Version": "v2", f"{prefix}-Signature": pingback_signature(body, key)}
    return body, {**JSON, **signed}


Signer = Callable[..., tuple[bytes, dict[str, str]]]
both = pytest.mark.parametrize("signed", [v1, v2])


@both
def test_a_genuine_pingback_is_valid_and_read(signed: Signer) -> None:
    pingback = gateway().pingback()
    assert pingback.validate(*signed())
    assert pingback.parse(*signed()) == {
        "event": "payment",
        "payment_order": {"id": 13330, "fees": Decimal("0.2703")},
        "pingback_ts": NOW,
    }


@both
def test_a_wrong_key_is_invalid(signed: Signer) -> None:
    assert not gateway().pingback().validate(*signed(key="another key"))
    with pytest.raises(InvalidPingback, match="check the private key") as refusal:
        gateway().pingback().parse(*signed(key="another key"))
    assert KEY not in str(refusal.value)


def test_a_changed_body_is_invalid() -> None:
    _, headers = v2()
    assert not gateway().pingback().validate(BODY.replace(b"13330", b"13331"), headers)


@both
def test_an_empty_body_is_invalid(signed: Signer) -> None:
    with pytest.raises(InvalidPingback, match="body is empty"):
        gateway().pingback().parse(*signed(b""))


@pytest.mark.parametrize("version", ["v3", "V2", "1", "ü"])
def test_an_unknown_version_is_invalid_even_with_the_right_key(version: str) -> None:
    headers = {**v1()[1], **v2()[1], "X-Service-Signature-Version": version}
    with pytest.raises(InvalidPingback, match="unknown; this library knows v1 and v2"):
        gateway().pingback().parse(BODY, headers)


def test_a_version_2_pingback_is_not_believed_for_its_api_key() -> None:
    assert not gateway().pingback().validate(BODY, {**v1()[1], "X-Service-Signature-Version": "v2"})


def test_an_explicit_version_1_is_understood() -> None:
    assert gateway().pingback().validate(BODY, {**v1()[1], "X-Service-Signature-Version": "v1"})


def test_missing_headers_are_invalid_and_named() -> None:
    with pytest.raises(InvalidPingback, match=r"header X-ApiKey is missing.*set header_prefix"):
        gateway().pingback().parse(BODY, {})


@both
def test_header_names_are_read_in_any_case(signed: Signer) -> None:
    body, headers = signed()
    for change in (str.lower, str.upper):
        assert gateway().pingback().validate(body, {change(name): value for name, value in headers.items()})


def test_the_header_prefix_is_configurable() -> None:
    branded = v2(prefix="X-FasterPay")
    assert gateway(prefix="X-FasterPay").pingback().validate(*branded)
    assert not gateway().pingback().validate(*branded)


@both
@pytest.mark.parametrize(
    ("seconds", "valid"), [(0, True), (300, True), (301, False), (-300, True), (-301, False), (10**9, False)]
)
def test_a_pingback_is_valid_for_300_seconds(signed: Signer, seconds: int, valid: bool) -> None:
    assert gateway(NOW + seconds).pingback().validate(*signed()) is valid


@pytest.mark.parametrize("stamp", [b"", b',"pingback_ts":0', b',"pingback_ts":null'])
def test_a_version_2_pingback_without_a_time_is_stale(stamp: bytes) -> None:
    body = b'{"event":"payment"' + stamp + b"}"
    assert not gateway().pingback().validate(*v2(body))


def test_a_version_1_pingback_may_lack_the_time() -> None:
    assert gateway().pingback().validate(*v1(b'{"event":"payment"}'))


@both
@pytest.mark.parametrize("stamp", ['"soon"', "[1]", "{}", "NaN", "Infinity", "1e400", "1" + "0" * 400])
def test_a_time_that_is_none_is_invalid(signed: Signer, stamp: str) -> None:
    assert not gateway().pingback().validate(*signed(f'{{"pingback_ts":{stamp}}}'.encode()))


@both
@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"\xff", b"\x00"])
def test_a_body_that_is_no_json_object_is_invalid(signed: Signer, body: bytes) -> None:
    assert not gateway().pingback().validate(*signed(body))


def test_a_version_1_form_body_is_read_by_its_content_type() -> None:
    body = f"event=payment&payment_order[merchant_order_id]=7&with_risk_check=0&pingback_ts={NOW}".encode()
    headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8", "x-apikey": KEY}
    assert gateway().pingback().parse(body, headers)["payment_order"] == {"merchant_order_id": "7"}
    assert not gateway(NOW + 301).pingback().validate(body, headers)
    assert not gateway().pingback().validate(b"a=1&a=2", headers)


@pytest.mark.parametrize("odd", ["ü", "\udcff", ""])
def test_an_odd_header_value_does_not_break_the_comparison(odd: str) -> None:
    assert not gateway().pingback().validate(BODY, {"X-ApiKey": odd})
    assert not gateway().pingback().validate(BODY, {**v2()[1], "X-Service-Signature": odd})


def test_a_decoded_body_is_refused_with_what_to_give_instead() -> None:
    with pytest.raises(TypeError, match=r"request\.get_data\(\)"):
        gateway().pingback().validate(BODY.decode(), v2()[1])  # type: ignore[arg-type]


def test_a_real_sample_verifies_with_its_noise() -> None:
    body = json.dumps({"merchant_net_revenue": -0.2608, "pingback_ts": NOW}, indent=1).encode()
    assert gateway().pingback().parse(*v2(body))["merchant_net_revenue"] == Decimal("-0.2608")
