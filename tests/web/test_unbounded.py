"""What a stranger may write at length is bounded: labels, ids, languages, what JSON holds."""

from __future__ import annotations

import httpx
import pytest
from babel import Locale, localedata
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from tests.lengths import long

from paydesk.web.checkout.pages import CATALOGUES, texts_for
from paydesk.web.texts import LANGUAGES

DIGITS = ("0", "01", "9" * 19, "9" * 20, "9" * 4299, "9" * 4400, "9" * 20000)
DELIVERIES = "/api/v1/deliveries"


def series() -> set[str]:
    """The routes by which requests are counted."""
    found = (metric for metric in REGISTRY.collect() if metric.name == "paydesk_request_seconds")
    return {sample.labels["route"] for metric in found for sample in metric.samples}


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/static/{}/x", "/static"),
        ("/static/{}", "/static/{{url_name}}"),
        ("/simulator/{}/x/y", "/simulator"),
        ("/brand/0{}00/x/style.css", "none"),
        ("/brand/77/{}/logo", "/brand/{{merchant_id}}/{{chosen}}/logo"),
        ("/account/{}/{}", "/account/{{path}}"),
        ("/checkout/{}", "/checkout/{{token}}"),
        ("/checkout/%2F{}", "none"),
        ("/payment/{}", "none"),
    ],
)
async def test_what_a_stranger_invents_is_neither_a_label_nor_in_the_log(
    web: httpx.AsyncClient, path: str, pattern: str
) -> None:
    await web.get(path.format("777000001", "x"))
    known = series()
    with capture_logs() as logs:
        for number in range(777000010, 777000030):
            await web.get(path.format(number, number))
    assert series() == known
    assert {line["route"] for line in logs if line["event"] == "answered"} == {pattern.format()}
    assert "7770000" not in repr(logs)
    assert not any("777000001" in route for route in known)


@pytest.mark.parametrize("digits", DIGITS, ids=len)
@pytest.mark.parametrize("path", ["/brand/{}/x/logo", "/account/{}/payments", "/operator/merchants/{}"])
async def test_what_is_no_id_is_no_page(web: httpx.AsyncClient, path: str, digits: str) -> None:
    answer = await web.get(path.format(digits))
    assert answer.status_code in (303, 404)


@pytest.mark.parametrize("deep", [7, 8, 100, 500, 600, 900, 1100, 30000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
async def test_json_is_read_to_a_few_levels(web: httpx.AsyncClient, deep: int, opening: str, closing: str) -> None:
    body = '{"a":' + opening * deep + "1" + closing * deep + "}"
    answer = await web.post(DELIVERIES, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 413)
    assert deep == 7 or len(body) > 65536 or "nested deeper than 8 levels" in answer.json()["message"]


@pytest.mark.parametrize("number", ["9" * 81, "9" * 4400, "-" + "9" * 20000, "0." + "1" * 500, "1e" + "1" * 100])
async def test_a_number_of_hundreds_of_digits_is_refused(web: httpx.AsyncClient, number: str) -> None:
    answer = await web.post(
        DELIVERIES,
        content=f'{{"public_key":"a","hash":"b","a":{number}}}',
        headers={"Content-Type": "application/json"},
    )
    assert (answer.status_code, "more than 80 digits" in answer.json()["message"]) == (400, True)


@pytest.mark.parametrize("text", ["[" * 500, '\\"' + "{" * 500, "9" * 500, "\\\\"])
async def test_what_stands_in_a_text_counts_for_nothing(web: httpx.AsyncClient, text: str) -> None:
    body = f'{{"public_key":"a","hash":"b","details":"{text}"}}'
    answer = await web.post(DELIVERIES, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 401, answer.text


async def test_texts_that_are_never_closed_are_read_once(web: httpx.AsyncClient) -> None:
    body = '{"a":"' + '\\"' * 30000
    answer = await web.post(DELIVERIES, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400


def test_no_header_brings_a_language_that_nobody_here_speaks() -> None:
    before = set(localedata._cache)
    for identifier in localedata.locale_identifiers():
        texts_for(identifier.replace("_", "-"))
        texts_for(f"{identifier.replace('_', '-')};q=0.5,tlh")
    assert {name.partition("_")[0] for name in set(localedata._cache) - before} <= {*LANGUAGES, "root"}


def test_what_is_kept_of_headers_is_what_was_understood() -> None:
    CATALOGUES._chosen.cache_clear()
    for quality in range(1, 1000):
        texts_for(f"de-AT;q=0.{quality:03},x{quality};q=0.001")
    assert CATALOGUES._chosen.cache_info().currsize == 1


@long
def test_every_language_of_the_pages_has_its_numbers() -> None:
    assert set(CATALOGUES.languages) <= set(LANGUAGES)
    assert texts_for("sv-SE,sv;q=0.9").locale == Locale("en")
    assert texts_for("sv-SE,sv;q=0.9").region == "SE"
    assert texts_for("de-xx-variant").region == ""
