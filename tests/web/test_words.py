"""Every value of what is shown in words has its words, at every door that shows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from enum import StrEnum
from html import escape
from pathlib import Path

import pytest
from starlette.responses import Response
from tests.web import every_page

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.domain.accounts.audit import Action
from paydesk.domain.accounts.roles import Role
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.chargebacks.states import ChargebackState
from paydesk.domain.deliveries.delivery_status import DeliveryStatus
from paydesk.domain.payments.states import PaymentState
from paydesk.domain.pingbacks.reasons import Why
from paydesk.domain.pingbacks.states import PingbackState
from paydesk.domain.proceeds.findings import FindingKind
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.web.account import delivery_words, pingback_words
from paydesk.web.account import wording as account_wording
from paydesk.web.card_words import CARD_ERRORS, DECLINES
from paydesk.web.checkout import pages as checkout
from paydesk.web.checkout import wording as checkout_wording
from paydesk.web.console import chargeback_words, payment_words, shell
from paydesk.web.console.action_names import ACTION_NAMES
from paydesk.web.console.shell import pages_of
from paydesk.web.decline_words import READS_AS, notice_for
from paydesk.web.mails.role_names import ROLE_NAMES
from paydesk.web.mails.writing import CATALOGUES as MAIL_CATALOGUES
from paydesk.web.operator import chargebacks, kind_names
from paydesk.web.portal import pages as portal
from paydesk.web.portal import wording as portal_wording

MADE_UP = "a_reason_that_came_later"
ENGLISH = checkout.texts_for("en")

Shown = Callable[[str], Response]
DOORS: dict[str, tuple[Shown, dict[str, str]]] = {
    "checkout": (
        lambda reason: checkout.payment_page(every_page.PAYMENT, ENGLISH, notice=reason),
        checkout_wording.NOTICES,
    ),
    "checkout, with JavaScript": (
        lambda reason: checkout.payment_problem(ENGLISH, notice=reason, status=402),
        checkout_wording.NOTICES,
    ),
    "portal": (
        lambda reason: portal.card_page(
            portal.PortalView(every_page.HELD, portal.texts_for("en"), "/portal/t1"), notice=reason
        ),
        portal_wording.NOTICES,
    ),
}
"""Where a customer reads why a card was declined."""

WORDS: dict[str, tuple[type[StrEnum], Collection[str]]] = {
    "roles, in mails and consoles": (Role, ROLE_NAMES),
    "roles, in the account": (Role, account_wording.ROLES),
    "declines, in the account": (DeclineReason, payment_words.DECLINES),
    "payments, in the account": (PaymentState, payment_words.PAYMENT_STATES),
    "payments, in the portal": (PaymentState, portal_wording.PAYMENTS),
    "subscriptions, in the account": (SubscriptionState, payment_words.SUBSCRIPTION_STATES),
    "subscriptions, in the portal": (SubscriptionState, portal_wording.STATES),
    "pingbacks": (PingbackState, pingback_words.STATES),
    "why pingbacks failed": (Why, pingback_words.REASONS),
    "deliveries": (DeliveryStatus, delivery_words.DELIVERY_STATUSES),
    "chargebacks, for operators": (ChargebackState, chargebacks.STATES),
    "disputes, in the account": (ChargebackState, chargeback_words.STATES),
    "what was done": (Action, ACTION_NAMES),
    "alarms": (AlarmKind, kind_names.ALARMS),
    "differences to an acquirer's balance": (FindingKind, kind_names.FINDINGS),
}
"""What stands in words, keyed by the enum whose values it names."""


@pytest.mark.parametrize(("values", "words"), WORDS.values(), ids=WORDS)
def test_every_value_has_words_and_nothing_else_does(values: type[StrEnum], words: Collection[str]) -> None:
    assert set(words) == set(values)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("reason", [*DeclineReason, MADE_UP])
def test_every_decline_is_told_at_every_door_one_of_tomorrow_too(door: str, reason: str) -> None:
    show, notices = DOORS[door]
    text = notice_for(reason, notices)
    assert "declined" in text
    body = bytes(show(reason).body).decode()
    assert (json.loads(body)["notice"] if door.endswith("JavaScript") else body).count(text) == 1


@pytest.mark.parametrize("notices", [checkout_wording.NOTICES, portal_wording.NOTICES], ids=["checkout", "portal"])
def test_a_door_has_words_of_its_own_for_each_decline_that_reads_like_no_other(notices: dict[str, str]) -> None:
    assert set(DeclineReason) - set(notices) == set(READS_AS)


def test_a_decline_without_words_is_told_like_one_without_a_reason() -> None:
    for _, notices in DOORS.values():
        assert notice_for(MADE_UP, notices) == notice_for(DeclineReason.DECLINED, notices)
    assert payment_words.decline_words(MADE_UP) == "A reason that came later"


@pytest.mark.parametrize(("field", "code"), [(field, code) for field, codes in CARD_ERRORS.items() for code in codes])
def test_doors_say_alike_what_is_wrong_with_a_card(field: str, code: str) -> None:
    german = checkout.texts_for("de")
    said = german.get(CARD_ERRORS[field][code])
    assert said != CARD_ERRORS[field][code]
    paying = checkout.payment_page(every_page.PAYMENT, german, field_errors={field: code}, status=400)
    changing = portal.card_page(
        portal.PortalView(every_page.HELD, portal.texts_for("de"), "/portal/t1"), errors={field: code}
    )
    assert [escape(said) in bytes(page.body).decode() for page in (paying, changing)] == [True, True]


@pytest.mark.parametrize("reason", DECLINES)
def test_doors_say_alike_why_a_card_was_declined_that_replaces_none(reason: str) -> None:
    said = portal.texts_for("de").get(DECLINES[reason])
    assert said != DECLINES[reason]
    paying = checkout.payment_page(every_page.PAYMENT, checkout.texts_for("de"), notice=reason)
    bare = every_page.held(has_card=False)
    first = portal.card_page(portal.PortalView(bare, portal.texts_for("de"), "/portal/t1"), notice=reason)
    assert [escape(said) in bytes(page.body).decode() for page in (paying, first)] == [True, True]


@pytest.mark.parametrize("role", Role)
def test_pages_name_a_role_as_mails_do(role: Role, tmp_path: Path) -> None:
    (tmp_path / "role.html").write_text("{{ kit.role(role) }}")
    pages = pages_of(tmp_path)
    for language in shell.CATALOGUES.languages:
        named = MAIL_CATALOGUES.texts_for(language).get(ROLE_NAMES[role])
        assert pages.render("role.html", shell.CATALOGUES.texts_for(language), role=role) == named
