"""Who looks for words in the guide finds the sections that have them, and the API's calls."""

from __future__ import annotations

import pytest

from paydesk.web.api.routes import router
from paydesk.web.guide.calls import REFERENCE, read_calls
from paydesk.web.guide.chapters import chapters
from paydesk.web.guide.searching import found

CALLS = read_calls(router.routes)


def lines(words: str) -> list[str]:
    """The calls that are found, in order."""
    return [place.call for place in found(words, CALLS, most=100) if place.call]


@pytest.mark.parametrize(
    ("words", "first"), [("test cards", "Test cards"), ("3.2 version", "3.2 Version 1"), ("REFUNDS", "Refunds")]
)
def test_a_heading_of_the_words_comes_first(words: str, first: str) -> None:
    place = found(words, CALLS)[0]
    assert place.title == first
    assert len(place.excerpt) <= 202
    assert place.address.removeprefix("/docs/").partition("#")[0] in chapters()


def test_nothing_is_found_for_nothing_or_for_words_that_are_nowhere() -> None:
    assert found("", CALLS) == found("   ", CALLS) == found("pingback zyxw", CALLS) == []


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("POST /api/v1/charges", "POST /api/v1/charges"),
        ("/api/v1/coupons", "GET /api/v1/coupons"),
        ("get payment_id", "GET /api/v1/payments/{payment_id}"),
        ("advance the test clock", "POST /api/v1/test_clock"),
        ("/api/v1/payments/13338", "GET /api/v1/payments/{payment_id}"),
        ("http://127.0.0.1:8000/sandbox/payment/7/refund?x=1", "POST /payment/{payment_id}/refund"),
    ],
)
def test_a_call_is_found_first_by_its_method_path_and_summary(words: str, call: str) -> None:
    place = found(words, CALLS)[0]
    assert place.call == call
    assert place.address.startswith(f"{REFERENCE}#")


def test_a_method_tells_calls_of_one_path_apart() -> None:
    assert lines("get /api/v1/coupons")[0] == "GET /api/v1/coupons"
    assert lines("post /api/v1/coupons")[0] == "POST /api/v1/coupons"
    assert "GET /api/v1/coupons" not in lines("post /api/v1/coupons")


def test_one_word_finds_sections_and_calls_in_singular_and_plural() -> None:
    for words in ("refund", "refunds"):
        assert "POST /payment/{payment_id}/refund" in lines(words)
        assert any(not place.call for place in found(words, CALLS))


def test_a_call_is_found_by_what_it_says_behind_those_that_are_called_so() -> None:
    asked = lines("balances")
    assert asked.index("GET /api/v1/balance") < asked.index("GET /api/v1/ledger")


def test_short_descriptions_are_shown_whole() -> None:
    [place] = [one for one in found("list coupons", CALLS) if one.call == "GET /api/v1/coupons"]
    assert place.excerpt == "Coupons, newest first."
