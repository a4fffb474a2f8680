import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from paydesk.core.periods import Period
from paydesk.domain.payments.checkouts import LIFETIME
from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP
from paydesk.domain.pingbacks.schedule import MOST_ATTEMPTS, RESEND_INTERVAL
from paydesk.domain.subscriptions.lifecycle import begin
from paydesk.domain.subscriptions.retry_times import MOST_RETRIES, RETRY_AFTER
from paydesk.domain.subscriptions.subscription_object import package_object, subscription_object
from paydesk.domain.subscriptions.subscription_terms import Package, Terms
from paydesk_client.pingback import OLDEST_SECONDS
from paydesk_client.readings import ADDRESS_PARTS, CHECKOUT_FIELDS, DELIVERY_FIELDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "interface.md").read_text()
NUMBERS = re.findall(r"^##+ (\d+(?:\.\d+)?)\.? ", PAGE, re.M)
CITING = [
    file
    for room in ("src", "tests", "bench")
    for file in sorted((ROOT / room).rglob("*"))
    if file.suffix in (".py", ".sql", ".html", ".js") and "vendor" not in file.parts and file != Path(__file__)
]


def section(number: str) -> str:
    """What stands under a numbered heading, up to the next one."""
    return re.split(r"^#", re.split(rf"^##+ {re.escape(number)}\.? .*$", PAGE, flags=re.M)[1], flags=re.M)[0]


def rows(number: str) -> list[tuple[str, str]]:
    """The table under a numbered heading: its first cell, and the last."""
    lines = [line.strip("|").split(" | ") for line in section(number).splitlines() if line.startswith("| ")][1:]
    return [(cells[0], cells[-1]) for cells in lines]


def fields(number: str) -> list[str]:
    """The names in the first column of the table under a numbered heading."""
    return [name for cell, _ in rows(number) for name in re.findall(r"`(\w+)`", cell)]


def test_each_citation_leads_to_a_section() -> None:
    for file in CITING:
        said = re.sub(r"\s+(?:#|--)?\s*", " ", file.read_text())
        for cited in re.findall(r"interface\.md( .{0,60})", said):
            listed = re.match(r" (§[\d.]*\d(?:(?:,| and|;) §[\d.]*\d)*)", cited)
            assert listed, f"{file}: interface.md is cited without a section:{cited}"
            assert set(re.findall(r"[\d.]*\d", listed[1])) <= set(NUMBERS), f"{file}: {listed[1]}"


def test_its_own_references_lead_to_sections() -> None:
    assert set(re.findall(r"§([\d.]*\d)", PAGE)) <= set(NUMBERS)


def test_sections_are_numbered_without_a_gap() -> None:
    expected: list[str] = []
    for number in NUMBERS:
        chapter, _, _ = (expected or ["0"])[-1].partition(".")
        within = sum(known.startswith(f"{chapter}.") for known in expected) + 1
        expected.append(f"{chapter}.{within}" if "." in number else str(int(chapter) + 1))
    assert expected == NUMBERS
    assert len(re.findall(r"^##+ ", PAGE, re.M)) == len(NUMBERS)


def test_the_forms_fields_are_those_that_it_has() -> None:
    assert sorted(fields("2.2") + fields("2.3")) == sorted(CHECKOUT_FIELDS)


def test_a_deliverys_fields_are_those_that_it_has() -> None:
    assert set(fields("8.6")) == DELIVERY_FIELDS - {"merchant_order_id"}
    assert set(ADDRESS_PARTS) <= set(re.findall(r"`(\w+)`", section("8.6")))


def test_the_subscription_object_is_explained_field_by_field() -> None:
    terms = Terms("Club", "club", "EUR", Decimal(10), Period(1, "month"), None, 0)
    package = Package(7, 12, terms, 0)
    subscription = begin(
        package,
        merchant_id=1,
        live=False,
        subscription_id=8,
        payment_id=18,
        merchant_order_id="A-9",
        email="ada@example.com",
        time_zone="UTC",
        at=datetime(2026, 11, 20, tzinfo=UTC),
    )
    assert fields("5.4") == list(subscription_object(subscription, with_init=True))
    assert fields("5.5") == list(package_object(package))


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("a checkout is open for", f"{LIFETIME // timedelta(hours=1)} hours"),
        ("from a failed pingback to the next attempt", f"{RESEND_INTERVAL.seconds // 60} minutes"),
        ("resends of a pingback", f"{MOST_ATTEMPTS - 1}"),
        ("from a failed charge to its retry", f"{RETRY_AFTER.seconds // 3600} hours"),
        ("retries of a charge", f"{MOST_RETRIES}"),
        ("to confirm a shipment", f"{TIME_TO_SHIP.days} days"),
        ("age of a pingback that a receiver accepts", f"{OLDEST_SECONDS} seconds"),
    ],
)
def test_the_limits_are_those_that_hold(limit: str, value: str) -> None:
    assert {name.strip(): said.strip() for name, said in rows("10")}[limit] == value


def test_rules_are_cited_by_section_and_from_nowhere_else() -> None:
    elsewhere = re.compile(r"\bspec(?:'s|:|, [A-Z])|\b(?:spec|wire)\.md|\(spec[ )]")
    released = ROOT / "src" / "paydesk" / "database" / "migrations"
    assert [str(file) for file in CITING if file.parent != released and elsewhere.search(file.read_text())] == []
