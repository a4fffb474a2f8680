import hmac
import json
from typing import Any
from urllib.parse import parse_qsl

from paydesk.domain.pingbacks.stamping import masked, stamp

PAYLOAD = (
    '{"event":"payment","payment_order":{"id":7,"merchant_order_id":"A~1 é&=","paid_amount":0.01,'
    '"merchant_net_revenue":-0.2608},"user":{"firstname":"Zoë","lastname":""},"with_risk_check":false}'
)


def stamped(**changes: Any) -> tuple[bytes, dict[str, str]]:
    given: dict[str, Any] = {
        "sign_version": "v1",
        "body_format": "json",
        "private_key": "secret",
        "header_prefix": "X-Service",
        "pingback_ts": 1_700_000_000,
    }
    return stamp(PAYLOAD, **{**given, **changes})


def test_the_stamp_is_the_last_field_and_nothing_else_changes() -> None:
    body, _ = stamped()
    assert body == PAYLOAD[:-1].encode() + b',"pingback_ts":1700000000}'
    assert json.loads(body)["pingback_ts"] == 1_700_000_000


def test_version_1_carries_the_private_key_and_no_signature() -> None:
    _, headers = stamped()
    assert headers == {"Content-Type": "application/json", "X-ApiKey": "secret"}


def test_version_2_carries_the_bodys_signature_and_no_key() -> None:
    body, headers = stamped(sign_version="v2")
    assert headers == {
        "Content-Type": "application/json",
        "X-Service-Signature-Version": "v2",
        "X-Service-Signature": hmac.new(b"secret", body, "sha256").hexdigest(),
    }


def test_the_prefix_of_the_signature_headers_is_the_deployments() -> None:
    _, headers = stamped(sign_version="v2", header_prefix="X-Brand")
    assert {"X-Brand-Signature-Version", "X-Brand-Signature"} < headers.keys()


def test_a_form_body_has_bracket_names_and_booleans_as_1_and_0() -> None:
    body, headers = stamped(body_format="form")
    assert body == (
        b"event=payment&payment_order%5Bid%5D=7&payment_order%5Bmerchant_order_id%5D=A%7E1+%C3%A9%26%3D"
        b"&payment_order%5Bpaid_amount%5D=0.01&payment_order%5Bmerchant_net_revenue%5D=-0.2608"
        b"&user%5Bfirstname%5D=Zo%C3%AB&user%5Blastname%5D=&with_risk_check=0&pingback_ts=1700000000"
    )
    assert ("payment_order[merchant_order_id]", "A~1 é&=") in parse_qsl(body.decode())
    assert headers == {"Content-Type": "application/x-www-form-urlencoded", "X-ApiKey": "secret"}


def test_a_version_2_body_is_always_json() -> None:
    body, headers = stamped(sign_version="v2", body_format="form")
    assert json.loads(body)
    assert headers["Content-Type"] == "application/json"


def test_headers_are_kept_without_the_private_key() -> None:
    _, headers = stamped()
    assert masked(headers) == {"Content-Type": "application/json", "X-ApiKey": "***"}
