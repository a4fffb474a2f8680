"""What the books keep in English is said in every reader's language where pages show it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import paydesk
from paydesk.core.wording import noted
from paydesk.domain.business.pingback_settings import PingbackSettings
from paydesk.domain.business.shop_settings import ShopSettings
from paydesk.domain.merchants.trade_terms import TradeTerms
from paydesk.domain.payments.card_guard import Counted
from paydesk.web.account.face import FACE as ACCOUNT
from paydesk.web.console.record_words import DETAIL_NAMES
from paydesk.web.messages import catalogue_paths, extract
from paydesk.web.noted_texts import NOTED, WORDS, said_again
from paydesk.web.operator.face import FACE as OPERATOR
from paydesk.web.texts import Texts
from paydesk.web.violations import Blocked, Violation

SOURCE = Path(paydesk.__file__).parent
CONSOLE = SOURCE / "web" / "console"
LANGUAGES = [path.parent.parent.name for path in catalogue_paths(CONSOLE)]
PATTERNS = sorted(str(one.id) for one in extract(CONSOLE) if one.id and NOTED in one.auto_comments)
PLACEHOLDER = re.compile(r"%\((\w+)\)s")
GERMAN = {
    "it was refused: %(why)s": "abgelehnt: %(why)s",
    "%(amount)s are missing": "es fehlen %(amount)s",
    "the key is wrong": "der Schlüssel ist falsch",
    "Ask them": "Fragen Sie sie",
    "at most 5 %% are %(what)s": "höchstens 5 %% sind %(what)s",
    "account %(name)s": "Konto %(name)s",
    "settled: %(words)s": "erledigt: %(words)s",
    "Paid": "Bezahlt",
    "Payment": "Zahlung",
}


def in_german(text: str) -> str:
    return said_again(text, tuple(GERMAN), lambda one: GERMAN.get(one, one))


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ("the key is wrong", "der Schlüssel ist falsch"),
        ("5.00 EUR are missing", "es fehlen 5.00 EUR"),
        ("it was refused: the key is wrong", "abgelehnt: der Schlüssel ist falsch"),
        ("it was refused: no such thing", "abgelehnt: no such thing"),
        ("it was refused: the key is wrong. Ask them", "abgelehnt: der Schlüssel ist falsch. Fragen Sie sie"),
        ("5.00 EUR are missing; the key is wrong", "es fehlen 5.00 EUR; der Schlüssel ist falsch"),
        ("at most 5 % are captured", "höchstens 5 % sind Bezahlt"),
        ("payment 13330", "Zahlung 13330"),
        ("purchase k-1 at stripe-eu", "Zahlung k-1 · stripe-eu"),
        ("captured", "Bezahlt"),
        ("account captured", "Konto captured"),
        ("settled: captured", "erledigt: captured"),
        ("no letters are missing", "no letters are missing"),
        ("shop k-1 at noon", "shop k-1 at noon"),
        ("what the bank says: no", "what the bank says: no"),
        ("Corner Shop", "Corner Shop"),
        (" are missing", " are missing"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_text_is_known_by_its_pattern_and_what_people_wrote_stays(kept: str, said: str) -> None:
    assert in_german(kept) == said


def test_what_a_stranger_makes_up_comes_to_an_end() -> None:
    # Whoever tried each way to take this apart would never be done.
    hostile = "it was refused: " * 60 + "x. " * 300
    assert in_german(hostile).endswith("x. x. ")
    assert in_german("a" * 1_000_000) == "a" * 1_000_000


def english_in(pattern: str, said: str) -> list[str]:
    pieces = [piece.strip(" ;:,.()") for piece in PLACEHOLDER.split(pattern)[::2]]
    words = [piece for piece in pieces if len(piece) > 12 and " " in piece and not piece.startswith("--")]
    return [piece for piece in words if piece in said]


@pytest.mark.parametrize("face", [ACCOUNT, OPERATOR], ids=["account", "operator"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_text_of_the_books_is_found_again_with_its_values(face: object, language: str) -> None:
    texts: Texts = face.catalogues.texts_for(language)  # type: ignore[attr-defined]
    assert set(texts.translations.noted) == set(PATTERNS)  # type: ignore[attr-defined]
    for pattern in PATTERNS:
        values = {name: f"⟨{number}⟩" for number, name in enumerate(PLACEHOLDER.findall(pattern))}
        said = texts.noted(noted(pattern, **values))
        assert said == texts.get(pattern) % values, pattern
        assert english_in(pattern, said) == [], said


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_word_of_the_books_has_one_in_the_language(language: str) -> None:
    texts = OPERATOR.catalogues.texts_for(language)
    for word, label in WORDS.items():
        assert texts.noted(word) == texts.get(label)
    assert texts.noted("payment 13330") == f"{texts.get('Payment')} 13330"


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_alarm_of_a_violated_policy_is_about_is_said_in_the_language(language: str) -> None:
    texts = OPERATOR.catalogues.texts_for(language)
    alarming = [
        violation
        for page in ("checkout", "portal")
        for directive in ("script-src-elem", "unknown")
        for blocked in Blocked
        if (violation := Violation(page, directive, blocked)).is_alarming
    ]
    assert len(alarming) == 20
    for one in alarming:
        said = texts.noted(str(one.kind))
        assert re.findall("checkout|portal|unknown|inline|eval|other site", said) == [], said
        assert (one.directive in said) == (one.directive != "unknown"), said


def calls() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(SOURCE.glob("**/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node


KEPT = {"Alarm": (2, "reason"), "Waits": (0, "reason"), "settle_alarms": (9, "by"), "set_aside": (9, "doing"),
        "claimed": (9, "doing"), "Difference": (4, "reason"), "Left": (1, "reason"), "AcquirerRefused": (0, "reason"),
        "KeyUsed": (0, "reason"), "Missing": (0, "reason")}  # fmt: skip
"""Where a text goes into the books: the place and name of the argument."""


def test_no_reason_is_kept_that_pages_could_not_say_in_other_languages() -> None:
    left, seen = [], 0
    for at, call in calls():
        place, name = KEPT.get(getattr(call.func, "id", ""), (9, ""))
        named = [one.value for one in call.keywords if one.arg == name]
        for said in [*call.args[place : place + 1], *named]:
            seen += 1
            pieces = said.values if isinstance(said, ast.JoinedStr) else [said]
            words = [one.value for one in pieces if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if any(re.search("[A-Za-z]{2}", word) for word in words):
                left.append(f"{at} {ast.unparse(said)}")
    assert seen > 120
    assert left == []


def dictionaries(module: ast.Module) -> Iterator[ast.Dict]:
    """What a module writes as details: in the argument of that name, or under a usual one."""
    for node in ast.walk(module):
        if isinstance(node, ast.keyword) and node.arg == "details" and isinstance(node.value, ast.Dict):
            yield node.value
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        named = {one.id for one in targets if isinstance(one, ast.Name)} & {"details", "said", "told", "why", "facts"}
        if named and isinstance(value := getattr(node, "value", None), ast.Dict):
            yield value


def test_each_detail_of_audit_log_and_alarms_has_a_name() -> None:
    left, seen = [], set()
    for path in sorted(SOURCE.glob("domain/**/*.py")):
        text = path.read_text()
        if "accounts.audit import" not in text and "alarms.raising import" not in text:
            continue
        for written in dictionaries(ast.parse(text)):
            for key in written.keys:
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    seen.add(key.value)
                    left += [f"{path.name}: {key.value}"] if key.value not in DETAIL_NAMES else []
    assert len(seen) > 40
    assert left == []
    settings = {*ShopSettings.__slots__, *TradeTerms.__slots__, *PingbackSettings.__slots__, *Counted}
    assert settings - {str(name) for name in DETAIL_NAMES} == set()
