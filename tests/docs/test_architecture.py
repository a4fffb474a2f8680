import re
from collections.abc import Mapping, Set
from enum import StrEnum
from pathlib import Path

import pytest

from paydesk.domain.chargebacks.states import TRANSITIONS as CHARGEBACK_TRANSITIONS
from paydesk.domain.deliveries.states import DELIVERY_TRANSITIONS
from paydesk.domain.payments.states import ATTEMPT_TRANSITIONS, MOVEMENT_TRANSITIONS, PAYMENT_TRANSITIONS
from paydesk.domain.pingbacks.states import TRANSITIONS as PINGBACK_TRANSITIONS
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
        ("### Card change", CARD_CHANGE_TRANSITIONS),
        ("### Chargeback", CHARGEBACK_TRANSITIONS),
        ("### Pingback", PINGBACK_TRANSITIONS),
    ],
)
def test_the_drawing_shows_the_table_of_transitions(heading: str, table: Mapping[StrEnum, Set[StrEnum]]) -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+)$", section(heading), re.M)
    assert sorted(drawn) == sorted((str(before), str(after)) for before, afters in table.items() for after in afters)


def test_the_tree_shows_every_room() -> None:
    tree = section("## The house")
    rooms = [path for path in SOURCE.rglob("*") if (path / "__init__.py").exists() or path.name == "migrations"]
    outer = [room for room in rooms if len(room.relative_to(SOURCE).parts) <= 2]
    assert [room.name for room in outer if f" {room.name}/ " not in tree] == []


def test_the_tree_shows_nothing_else() -> None:
    names = re.findall(r"^ +(\w+)/ ", section("## The house"), re.M)
    known = {path.name for path in (ROOT / "src").rglob("*") if path.is_dir()}
    assert set(names) <= known


def test_statements_and_files_of_the_flow_exist() -> None:
    flow = section("## One payment, from door to row")
    statements = {
        name for path in SOURCE.rglob("*.sql") for name in re.findall(r"^-- name: (\w+)", path.read_text(), re.M)
    }
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| ([^|]*)\|$", flow, re.M)[1:]
    assert len(rows) == 9
    named = {name for _, cell in rows for name in re.findall(r"`(\w+)`", cell)}
    assert named <= statements
    drawn = " ".join(re.findall(r"[WK]->>D: (.*)", flow))
    assert set(re.findall(r"\b[a-z]+_[a-z_]+\b", drawn)) <= statements
    files = [file for cell, _ in rows for file in re.findall(r"`([\w/]+\.py)`", cell)]
    assert [file for file in files if not list(SOURCE.parent.rglob(file))] == []
