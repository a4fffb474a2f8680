"""What goes wrong is said in the language of whoever looks at it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from tests.web.account.conftest import OpenVisitor, Visitor, leads_to, text_of

import paydesk
from paydesk.core import errors
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE, Action, Actor, record
from paydesk.web import messages
from paydesk.web.account.face import FACE
from paydesk.web.console.payment_words import refusal_in_words
from paydesk.web.console.record_words import DETAIL_NAMES

SOURCE = Path(paydesk.__file__).parent
SECURITY = "/account/security"
OTHERS = ("ar", "de", "fr", "ja", "zh")

SHOWN = ("domain/business", "web/account", "web/console", "web/operator")
"""Where each error may come to be read on a page of account or console."""

IN_ENGLISH = (
    "a pingback of version 1 carries",
    "the form must be sent as multipart/form-data",
    "the form has more than",
    "SEPA carries",
    "what was tried with live cards",
    "is not paused on this side",
    "the front-end files are missing",
)
"""Beginnings of messages for whoever calls the API or a command, or writes a form of their own."""

TEA = {"name": "Tea", "sku_id": "t", "currency": "eur", "price": "5", "period_length": "1"}
FORMS = [
    *[
        ("subscriptions/packages/new", {**TEA, name: text})
        for name, text in {"name": "", "currency": "xxx", "period_length": "x"}.items()
    ],
    *[("subscriptions/packages/new", {**TEA, "price": price}) for price in ("-5", "0", "1,000.55")],
    ("coupons/new", {"code": "?", "percent": "5"}),
    ("coupons/new", {"code": "TEA", "percent": "500"}),
    ("coupons/new", {"code": "TEA", "percent": "5", "amount": "5", "currency": "EUR"}),
    ("coupons/new", {"code": "TEA", "amount": "5"}),
]
"""Forms of a merchant's pages that can't be accepted so."""


@cache
def patterns() -> list[str]:
    """The longest piece of each text that an error may say in English, but for a first letter
    that may be a capital one on a page.
    """
    found = messages.extract(SOURCE / "web" / "console")
    said = [str(one.id) for one in found if one.id and any(not at.endswith(".html") for at, _ in one.locations)]
    pieces = [max(re.split(r"%\(\w+\)s", text), key=len).strip(' ;:,".') for text in said]
    return [piece[1:] for piece in pieces if len(piece) > 12 and " " in piece]


def english_in(text: str) -> list[str]:
    return [piece for piece in patterns() if piece in text]


async def speak(visitor: Visitor, language: str) -> None:
    fields = {"name": "Ada Lovelace", "language": language, "time_zone": "UTC"}
    assert leads_to(await visitor.send(SECURITY, f"{SECURITY}/profile", **fields)) == SECURITY


@pytest.mark.parametrize("language", OTHERS)
async def test_a_form_that_is_refused_says_why_in_the_readers_language(owner: Visitor, language: str) -> None:
    said = []
    for page, typed in FORMS:
        answer = await owner.send(f"{owner.merchant_path}/{page}", **typed)
        assert answer.status_code == 400, text_of(answer)
        assert english_in(text_of(answer)), f"{page} {typed} says nothing that is known"
    await speak(owner, language)
    for page, typed in FORMS:
        answer = await owner.send(f"{owner.merchant_path}/{page}", **typed)
        assert answer.status_code == 400
        said += english_in(text_of(answer))
    assert said == []


async def test_a_wrong_password_is_refused_in_the_browsers_language(stranger: OpenVisitor) -> None:
    visitor = await stranger()
    visitor.web.headers["accept-language"] = "fr"
    answer = await visitor.send("/account/login", email="nobody@shop.example", password="wrong")
    assert "L’adresse e-mail ou le mot de passe est faux." in text_of(answer)
    assert english_in(text_of(answer)) == []


async def test_the_name_of_a_field_is_translated_and_a_sentence_ends_as_the_language_does(owner: Visitor) -> None:
    page = f"{owner.merchant_path}/subscriptions/packages/new"
    typed = {**TEA, "price": "0"}
    for language, said in {
        "de": "Preis: „0“ muss größer als 0 sein.",
        "fr": "Prix : « 0 » doit être supérieur à 0.",
        "ja": "価格：「0」は0より大きくしてください。",
    }.items():
        await speak(owner, language)
        assert said in text_of(await owner.send(page, **typed))


@pytest.mark.parametrize("room", SHOWN)
def test_every_error_that_a_page_may_say_can_be_translated(room: str) -> None:
    known = {
        name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, errors.PaydeskError)
    }
    left = []
    for path in sorted((SOURCE / room).glob("**/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.exc if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) else None
            name = getattr(called.func, "id", "") if called is not None else ""
            # A page that isn't there has its own words.
            if called is None or name not in known - {"NotFound"} or not called.args:
                continue
            said = called.args[0]
            plain = isinstance(said, ast.JoinedStr | ast.Constant)
            if plain and not any(one in ast.unparse(said) for one in IN_ENGLISH):
                left.append(f"{path.name}:{called.lineno} {ast.unparse(said)}")
    assert left == []


@pytest.mark.parametrize("language", OTHERS)
def test_why_a_bank_refused_is_said_in_the_readers_language(language: str) -> None:
    texts = FACE.catalogues.texts_for(language)
    ours = "8.00 USD can't be captured, 5.00 USD is held"
    assert english_in(refusal_in_words(texts, ours)) == []
    assert "8.00 USD" in refusal_in_words(texts, ours)
    assert "PAYDESK_STRIPE_SECRET_KEY" in refusal_in_words(
        texts, "Stripe does not accept PAYDESK_STRIPE_SECRET_KEY for this; check it"
    )
    assert refusal_in_words(texts, "expired_or_canceled_card") == "expired or canceled card"
    assert refusal_in_words(texts, "Call your_bank, please") == "Call your_bank, please"


@pytest.mark.parametrize("language", OTHERS)
async def test_a_name_is_not_translated_where_it_is_a_word_of_ours(
    owner: Visitor, database: Database, language: str
) -> None:
    merchant_id = int(owner.merchant_path.rsplit("/", 1)[1])
    await record(
        database, COMMAND_LINE, Action.acquirer_changed, now=utc_now(), merchant_id=merchant_id, subject="test"
    )
    await record(database, COMMAND_LINE, Action.exported, now=utc_now(), merchant_id=merchant_id, subject="payments")
    await speak(owner, language)
    shown = (await owner.see(f"{owner.merchant_path}/settings/audit")).text
    assert "<bdi>test</bdi>" in shown
    assert f"<bdi>{FACE.catalogues.texts_for(language).get('Payments')}</bdi>" in shown


@pytest.mark.parametrize("language", OTHERS)
async def test_the_audit_log_names_acts_and_what_was_changed_in_the_readers_language(
    owner: Visitor, database: Database, language: str
) -> None:
    details = {name: f"{number}-{name}" for number, name in enumerate(DETAIL_NAMES)}
    said = {"side": "live", "shipped_goods": "False → True", "scopes": [], "old_keys_until": "2026-11-27T10:00:00Z"}
    person_id = await database.fetchval("select id from person where email = $1", owner.email)
    for number, action in enumerate(Action):
        await record(
            database,
            Actor(person_id, "198.51.100.7"),
            action,
            now=utc_now(),
            merchant_id=int(owner.merchant_path.rsplit("/", 1)[1]),
            subject=f"payment {number}88",
            details={**details, **said} if number == 0 else {"test_mode": True},
        )
    page = f"{owner.merchant_path}/settings/audit"
    shown = text_of(await owner.see(f"{page}?action={next(iter(Action))}"))
    assert "We ship goods: No → Yes" in shown
    await speak(owner, language)
    texts = FACE.catalogues.texts_for(language)
    shown = text_of(await owner.see(f"{page}?action={next(iter(Action))}"))
    for name in DETAIL_NAMES:
        value = "" if name in said else f"{details[name]}"
        assert f"{texts.get(DETAIL_NAMES[name])}: {value}" in shown, name
    for words in (f"{texts.get('Payment')} 088", f"{texts.get('No')} → {texts.get('Yes')}", texts.get("Live")):
        assert words in shown
    assert "T10:00" not in shown
    for action in list(Action)[1:]:
        shown = text_of(await owner.see(f"{page}?action={action}"))
        assert f"{texts.get('Test mode')}: {texts.get('Yes')}" in shown, action
        assert english_in(shown) == []
