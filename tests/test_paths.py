"""A test's path says what it is about: a module, or a promise that several keep together
(CONTRIBUTING, Tests).
"""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parent
SOURCES = TESTS.parent / "src"
MIRRORED = ("adapters", "commands", "core", "database", "domain", "loops", "paydesk_client", "web")
"""Rooms whose tests lie in folders of the same names; beside these lie plays of the whole:
e2e, faults, docs, …."""
BY_DOOR = "web"
"""Here a folder is a door's, and a file is a module of it, a page,
or something that a visitor does there."""

ACROSS = {
    "adapters/acquirers": ("balances", "contract"),
    "adapters/acquirers/simulator": ("lying",),
    "adapters/acquirers/stripe": ("errors", "sending"),
    "adapters/outbound": ("odd_answers",),
    "commands": ("copying", "held", "help", "json_alone", "serving_slowly", "serving_tls"),
    "database": (
        *("columns_by_name", "lent_transactions", "statements_by_merchant", "statements_prepared"),
        *("steps_beside_work", "untyped_rows"),
    ),
    "domain": ("tables",),
    "domain/acquirers": ("failing_accounts",),
    "domain/accounts": ("names",),
    "domain/billing": ("beginning_anew", "charges_afterwards", "forgotten_charges", "slow_renewals", "what_becomes"),
    "domain/deliveries": ("shipping_from_pages",),
    "domain/chargebacks": ("as_banks_do", "of_the_version_before", "reading_under_a_lease"),
    "domain/ledger": ("checking_after", "checking_coupons", "checking_figures", "checking_subscriptions", "statement"),
    "domain/mail": ("caps", "every_kind", "reach", "telling_afterwards"),
    "domain/moving": (
        *("accounts_apart", "accounts_elsewhere", "coming_back", "disputes_of_both", "failed_refunds_of_both"),
        *("fencing_amid_writers", "going_on_here", "half_way", "home_came_back", "interleaved", "own_accounts"),
        *("money_on_the_way", "reading_just_before", "reading_meanwhile", "refused_accounts", "several_at_once"),
        *("several_cells_at_once", "shared_bank", "stragglers", "taken_away_there", "test_clocks", "told_anew"),
        *("told_of_both", "resealing_meanwhile", "waits"),
    ),
    "domain/operations": ("comparing_under_a_lease", "posted_again"),
    "domain/payments": (
        *("after_machine", "card_secrecy", "contradictions", "documented_bank", "failed_refunds_under_a_lease"),
        *("no_longer_kept", "races", "refund_limits", "refund_races", "slow_methods", "suspension"),
    ),
    "domain/pingbacks": ("crowds", "fairness", "hostile_shops", "php_shops"),
    "domain/subscriptions": (
        *("changing_plans_at_once", "changing_put_back", "of_the_version_before", "on_pages"),
        *("card_numbers", "charged_back", "life", "machine", "muting", "races", "set_aside", "unattended"),
        *("digits_of_charges", "withdrawn_currency"),
    ),
    "domain/test_clock": ("changes",),
    "paydesk_client": ("clients_in_the_field", "packaging", "readme"),
}
"""Files about no single module, by folder: the promise stands in their first line."""

FILES = sorted(path for room in MIRRORED for path in (TESTS / room).rglob("test_*.py"))
NAMED = [path for path in FILES if path.relative_to(TESTS).parts[0] != BY_DOOR]


def folder(path: Path) -> str:
    return path.parent.relative_to(TESTS).as_posix()


def subject(path: Path) -> str:
    return path.stem.removeprefix("test_")


def package(path: Path) -> Path:
    """Where the modules are that a file in this folder may be about."""
    rooms = path.parent.relative_to(TESTS)
    return SOURCES / rooms if rooms.parts[0] == "paydesk_client" else SOURCES / "paydesk" / rooms


def is_module(path: Path) -> bool:
    at = package(path) / subject(path)
    return at.with_suffix(".py").exists() or (at / "__init__.py").exists()


def is_listed(path: Path) -> bool:
    return subject(path) in ACROSS.get(folder(path), ())


def test_a_folder_is_a_package() -> None:
    folders = sorted({folder(path) for path in FILES})
    lost = [name for name in folders if not package(TESTS / name / "test_it.py").is_dir()]
    assert lost == [], "no packages are called that: their tests lie where they were"


def test_a_file_is_a_modules_or_a_promise_across_modules() -> None:
    unclear = [path for path in NAMED if is_module(path) is is_listed(path)]
    assert unclear == [], "they name no module of their folder: rename them, or list them"


def test_a_promise_across_modules_is_said_in_the_first_line() -> None:
    silent = [path for path in NAMED if is_listed(path) and not ast.get_docstring(ast.parse(path.read_text()))]
    assert silent == []


def test_what_is_listed_is_there() -> None:
    listed = {f"{name}/test_{one}.py" for name, several in ACROSS.items() for one in several}
    assert listed <= {path.relative_to(TESTS).as_posix() for path in NAMED}
