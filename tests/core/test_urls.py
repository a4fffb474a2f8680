from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paydesk.core.errors import Malformed
from paydesk.core.urls import as_header, check_url, source_of


@pytest.mark.parametrize(
    ("url", "scheme"),
    [
        ("https://shop.example", "https"),
        ("HTTP://Shop.Example:8080/a?b#c", "http"),
        ("https://localhost/", "https"),
        ("https://[::1]:8443/", "https"),
        ("https://münchen.example/", "https"),
        ("https://under_score.example/", "https"),
        ("https://user:word@shop.example/", "https"),
        ("https://shop.example/a b/ü", "https"),
        ("shopapp://paid?x=1", "shopapp"),
        ("com.shop.app:paid", "com.shop.app"),
        ("javascript:alert(1)", "javascript"),
    ],
)
def test_an_absolute_url_gives_its_scheme(url: str, scheme: str) -> None:
    assert check_url(url, "success_url") == scheme


@pytest.mark.parametrize(
    "url",
    [
        *("", "/thanks", "//shop.example/", "shop.example/thanks", "?a", "https:", "https://", "https:///thanks"),
        *("https:shop.example", "https:/shop.example", "https:\\\\shop.example", " https://shop.example", "1http://a/"),
        *("https://shop.example:port/", "https://shop.example:70000/", "https://[::1/", "https://[zz]/"),
        *("https://?a", "https://#a", "https://user@/", "https://sh op.example/", "https://shop%2Eexample/"),
        *("https://-/", "https://" + "ü" * 70 + ".example/", "http://<script>/"),
        *(f"https://shop.example/{control}x" for control in "\x00\t\n\r\x1f\x7f\x85\u2028\u2029"),
        *(f"shop{control}app://x" for control in "\x00\n\r"),
        *("shopapp://[paid", "shopapp://paid]", "shopapp://[::1"),
    ],
)
def test_what_is_not_absolute_or_not_harmless_is_refused(url: str) -> None:
    with pytest.raises(Malformed) as refused:
        check_url(url, "success_url")
    assert refused.value.fields == ("success_url",)


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example/%7Ea/~b/%zz/%?q=a+b&c[]=1&d={x}|^`<>\"'\\#f",
        "com.shop.app:paid",
        "shopapp://paid?x=1",
        "HTTPS://Shop.Example",
    ],
)
def test_printable_ascii_stands_in_a_header_as_it_was_given(url: str) -> None:
    assert as_header(url) == url


def test_spaces_and_non_ascii_are_percent_encoded() -> None:
    assert as_header("https://shop.example/a b?ü=€") == "https://shop.example/a%20b?%C3%BC=%E2%82%AC"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_nothing_can_break_out_of_a_header(text: str) -> None:
    header = as_header(text)
    assert header.isascii()
    assert header.isprintable()
    assert " " not in header
    if "%" not in text:
        assert unquote(header) == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_a_url_or_malformed(text: str) -> None:
    for url in (text, f"https://{text}", f"https://{text}/", f"app:{text}"):
        try:
            scheme = check_url(url, "success_url")
        except Malformed:
            continue
        assert as_header(url).lower().startswith(f"{scheme}:")
        assert source_of(url).isascii()


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("https://Shop.Example/thanks?a=1", "https://shop.example"),
        ("https://user:word@shop.example:8443/", "https://shop.example:8443"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("https://münchen.example/", "https://xn--mnchen-3ya.example"),
        ("ShopApp://paid", "shopapp:"),
    ],
)
def test_the_source_of_a_url_is_its_origin_or_an_apps_scheme(url: str, source: str) -> None:
    assert source_of(url) == source
