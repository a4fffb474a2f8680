from decimal import Decimal
from urllib.parse import urlencode

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.markup import Markup

from paydesk_client import Gateway, UnknownSignatureVersion
from paydesk_client.parameters import Value, parse_form
from paydesk_client.readings import find_ambiguity
from paydesk_client.signature import signature_version, verify

GATEWAY = Gateway("public", "private-key", "https://pay.example.com/", is_test=True)
ORDER: dict[str, Value] = {
    "merchant_order_id": "7",
    "amount": Decimal("5.00"),
    "currency": "EUR",
    "description": "Golden Ticket",
}


def read(html: str) -> Markup:
    """A form as a browser reads it, whose parser turns CRLF into LF before anything else."""
    return Markup(html.replace("\r\n", "\n"))


def posted(html: str) -> dict[str, Value]:
    """What a browser posts of it: values with CRLF line ends."""
    fields = [(one["name"] or "", (one["value"] or "").replace("\n", "\r\n")) for one in read(html).all("input")]
    return parse_form(urlencode(fields).encode())


def posted_by(parameters: dict[str, Value]) -> dict[str, Value]:
    return posted(GATEWAY.payment_form().build_form(parameters))


def is_genuine(posted: dict[str, Value]) -> bool:
    return verify(posted, posted["hash"], "private-key", signature_version(posted)).variant == "canonical"


@pytest.mark.parametrize("extra", [{}, {"sign_version": "v1"}, {"sign_version": "v2"}])
def test_the_form_posts_a_valid_hash(extra: dict[str, Value]) -> None:
    posted = posted_by({**ORDER, **extra})
    assert is_genuine(posted)
    assert {**ORDER, **extra, "amount": "5.00", "api_key": "public", "hash": posted["hash"]} == posted


def test_the_form_goes_to_the_checkout_page_in_utf_8() -> None:
    form = read(GATEWAY.payment_form().build_form(ORDER)).all("form")[0]
    assert form["action"] == "https://pay.example.com/sandbox/payment/form"
    assert form["method"] == "post"
    assert form["accept-charset"] == "utf-8"


_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)


@given(text=_texts, version=st.sampled_from(["v1", "v2"]))
def test_any_text_survives_the_browser(text: str, version: str) -> None:
    nested: dict[str, Value] = {"nested": {"list": [text, "x"]}} if version == "v1" else {}
    order: dict[str, Value] = {**ORDER, "note": text, "sign_version": version, **nested}
    assume(version == "v1" or find_ambiguity({**order, "api_key": "public"}) is None)
    posted = posted_by(order)
    assert is_genuine(posted)
    assert posted["note"] == text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")


def test_names_and_values_cannot_break_out_of_the_form() -> None:
    html = GATEWAY.payment_form().build_form({**ORDER, 'x"><script>': "\"'><script>alert(1)</script>&amp;"})
    assert "<script" not in html
    assert posted(html)['x"><script>'] == "\"'><script>alert(1)</script>&amp;"


def test_what_no_browser_can_post_is_left_out_before_signing() -> None:
    posted = posted_by({**ORDER, "email": None, "city": "", "list": [None, "x", []], "yes": True, "no": False, "e": {}})
    assert is_genuine(posted)
    assert "email" not in posted
    assert (posted["city"], posted["list"], posted["yes"], posted["no"]) == ("", ["x"], "1", "0")


def test_a_stale_hash_or_foreign_key_is_replaced() -> None:
    built = GATEWAY.payment_form().build_parameters({**ORDER, "hash": "old", "api_key": "another"})
    assert built["api_key"] == "public"
    assert built == GATEWAY.payment_form().build_parameters(ORDER)


def test_the_given_parameters_are_not_changed() -> None:
    parameters = dict(ORDER)
    GATEWAY.payment_form().build_parameters(parameters)
    assert parameters == ORDER


def test_auto_submit_adds_a_script_that_carries_the_nonce() -> None:
    html = GATEWAY.payment_form().build_form(ORDER, auto_submit=True, nonce='n"1')
    assert '</form><script nonce="n&quot;1">' in html
    assert "submit.call(document.currentScript.previousElementSibling)" in html
    assert "<script>" in GATEWAY.payment_form().build_form(ORDER, auto_submit=True)


@pytest.mark.parametrize(
    ("auto_submit", "hidden", "tags"),
    [
        (False, False, ["button"]),
        (False, True, []),
        (True, False, ["button", "script"]),
        (True, True, ["noscript", "button", "script"]),
    ],
)
def test_the_button_can_be_hidden_but_stays_where_scripts_are_off(
    auto_submit: bool, hidden: bool, tags: list[str]
) -> None:
    html = GATEWAY.payment_form().build_form(ORDER, auto_submit, hidden)
    assert [tag for tag, _ in read(html).found if tag not in ("form", "input")] == tags


def test_a_v2_form_that_reads_two_ways_is_refused_when_it_is_built() -> None:
    unlucky: dict[str, Value] = {**ORDER, "description": "x;amount=1"}
    with pytest.raises(ValueError, match='"description" contains ";amount="; take that out or sign with v1'):
        GATEWAY.payment_form().build_form({**unlucky, "sign_version": "v2"})
    assert is_genuine(posted_by(unlucky))


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(UnknownSignatureVersion, match="expected v1 or v2"):
        GATEWAY.payment_form().build_form({**ORDER, "sign_version": "3"})
