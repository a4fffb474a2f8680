import re
from collections.abc import Mapping, Set
from enum import StrEnum
from pathlib import Path

import pytest
from tests.docs.house import house

from paydesk.domain.chargebacks.states import TRANSITIONS as CHARGEBACK_TRANSITIONS
from paydesk.domain.deliveries.delivery_status import DELIVERY_TRANSITIONS
from paydesk.domain.ledger.balances import PostingKind
from paydesk.domain.payments.states import ATTEMPT_TRANSITIONS, MOVEMENT_TRANSITIONS, PAYMENT_TRANSITIONS
from paydesk.domain.pingbacks.states import TRANSITIONS as PINGBACK_TRANSITIONS
from paydesk.domain.subscriptions.changes import CHANGE_TRANSITIONS
from paydesk.domain.subscriptions.states import CARD_CHANGE_TRANSITIONS, SUBSCRIPTION_TRANSITIONS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
SOURCE = ROOT / "src" / "paydesk"


def section(heading: str) -> str:
    """What stands under a heading, up to the next one."""
    return re.split(r"^#", PAGE.split(f"\n{heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]


@pytest.mark.parametrize(
    ("heading", "table"),
    [
        ("### Payment", PAYMENT_TRANSITIONS),
        ("### Attempt", ATTEMPT_TRANSITIONS),
        ("### Movement", MOVEMENT_TRANSITIONS),
        ("### Delivery", DELIVERY_TRANSITIONS),
        ("### Subscription", SUBSCRIPTION_TRANSITIONS),
        ("### Subscription change", CHANGE_TRANSITIONS),
        ("### Card change", CARD_CHANGE_TRANSITIONS),
        ("### Chargeback", CHARGEBACK_TRANSITIONS),
        ("### Pingback", PINGBACK_TRANSITIONS),
    ],
)
def test_the_drawing_shows_the_table_of_transitions(heading: str, table: Mapping[StrEnum, Set[StrEnum]]) -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+)$", section(heading), re.M)
    assert sorted(drawn) == sorted((str(before), str(after)) for before, afters in table.items() for after in afters)


def test_the_list_of_rooms_is_what_docstrings_and_contracts_say() -> None:
    assert f"\n{house()}\n" in PAGE, "write it anew: .venv/bin/python -m tests.docs.house"


def test_every_room_is_in_the_list() -> None:
    rooms = [
        path.parent for path in SOURCE.rglob("__init__.py") if 1 <= len(path.parent.relative_to(SOURCE).parts) <= 2
    ]
    listed = re.findall(r"^ +- `(\w+)/`", house(), re.M)
    assert sorted(listed) == sorted(room.name for room in rooms)


STATEMENTS = {name for path in SOURCE.rglob("*.sql") for name in re.findall(r"^-- name: (\w+)", path.read_text(), re.M)}


@pytest.mark.parametrize(
    ("heading", "steps"),
    [
        ("## One payment, from door to row", 9),
        ("## Captures, voids and refunds", 4),
        ("## Renewals, batch by batch", 4),
    ],
)
def test_statements_and_files_of_the_flow_exist(heading: str, steps: int) -> None:
    flow = section(heading)
    listed = re.findall(r"^\d\. (?:.*\n)(?:   .*\n)*", flow, re.M)
    assert len(listed) == steps
    for step in listed:
        code, _, statements = re.sub(r"\s+", " ", step).partition("Code: ")[2].partition("Statements: ")
        assert set(re.findall(r"`(\w+)`", statements)) <= STATEMENTS
        files = re.findall(r"`([\w/]+\.py|[\w/]+/)`", code)
        assert files
        assert [file for file in files if not list(SOURCE.parent.rglob(file.rstrip("/")))] == []
    drawn = " ".join(re.findall(r"[WK]->>D: (.*)", flow))
    assert set(re.findall(r"\b[a-z]+_[a-z_]+\b", drawn)) <= STATEMENTS


def test_the_table_of_postings_has_every_kind_of_posting() -> None:
    assert re.findall(r"^\| `(\w+)` \|", section("## Where the money is"), re.M) == list(PostingKind)


def test_decisions_stand_under_their_headings() -> None:
    page = PAGE.split("\n## Decisions\n", 1)[1].split("\n## ", 1)[0]
    assert re.findall(r"^### (.*)$", page, re.M) == ["Money", "Time", "Database", "People", "Doors", "Reading"]
