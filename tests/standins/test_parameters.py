"""Planted errors, one of each kind, are found in a request that is otherwise right."""

from __future__ import annotations

from typing import Any

import pytest
from stripe.params.checkout import SessionCreateParams
from tests.standins.parameters import nested, problems

RIGHT = [
    ("mode", "payment"),
    ("locale", "de"),
    ("expires_at", "1767225600"),
    ("line_items[0][quantity]", "1"),
    ("line_items[0][price_data][currency]", "eur"),
    ("line_items[0][price_data][product_data][name]", "A mug"),
    ("adaptive_pricing[enabled]", "false"),
    ("metadata[any]", "thing"),
    ("excluded_payment_method_types[0]", "sepa_debit"),
]


def found(pairs: list[tuple[str, str]]) -> list[str]:
    shape: Any = SessionCreateParams
    return list(problems(nested(pairs), shape))


def test_a_right_request_has_none() -> None:
    assert found(RIGHT) == []


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        (("custmer_email", "a@b.c"), "custmer_email: no such parameter"),
        (("line_items[0][price_data][unit_amont]", "1"), "line_items[0].price_data.unit_amont: no such parameter"),
        (("locale", "xx"), "locale: 'xx' is not listed"),
        (("excluded_payment_method_types[1]", "cheque"), "excluded_payment_method_types[1]: 'cheque' is not listed"),
        (("expires_at", "soon"), "expires_at: 'soon' is no int"),
        (("adaptive_pricing[enabled]", "no"), "adaptive_pricing.enabled: 'no' is no bool"),
    ],
)
def test_a_planted_error_is_found(planted: tuple[str, str], said: str) -> None:
    assert found([*RIGHT, planted]) == [said]


def test_a_missing_parameter_is_found() -> None:
    left = [pair for pair in RIGHT if not pair[0].endswith("[name]")]
    left.append(("line_items[0][price_data][product_data][description]", "A mug"))
    assert found(left) == ["line_items[0].price_data.product_data.name: missing"]
