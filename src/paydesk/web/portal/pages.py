"""The pages of the customer's portal. They show what they are given and decide nothing;
no money moves here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from babel.dates import format_date
from starlette.responses import HTMLResponse

from paydesk.core.cards import BRAND_RULES, Brand
from paydesk.core.periods import occurrence, zone_named
from paydesk.core.urls import front_page
from paydesk.domain.billing.for_customer import RECEIPTS, Holding, PastPayments, Receipt
from paydesk.domain.billing.foreseeing import Foreseen
from paydesk.domain.billing.open_payments import Standing
from paydesk.domain.payments.states import PAGE_LEFT
from paydesk.domain.shoppers.for_customer import SavedAtShop
from paydesk.domain.subscriptions.items import Item
from paydesk.domain.subscriptions.lifecycle import kept, resumed
from paydesk.domain.subscriptions.prorating import charge_for
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.domain.subscriptions.subscription_terms import MOST_UNITS, Package
from paydesk.web.agreement import renewals_in_words, terms_in_words
from paydesk.web.brands import Look, brand_address
from paydesk.web.card_words import CARD_ERRORS
from paydesk.web.card_words import CATALOGUES as CARD_CATALOGUES
from paydesk.web.decline_words import FIELD_OF_DECLINE, notice_for
from paydesk.web.looking_again import look_again
from paydesk.web.portal import wording
from paydesk.web.rendering import DoorTemplates, secured
from paydesk.web.texts import Catalogues, Texts

_HERE = Path(__file__).parent
_BRAND_NAMES = {str(brand): rule.label for brand, rule in BRAND_RULES.items() if brand is not Brand.UNKNOWN}
_PAGES = DoorTemplates(_HERE / "templates", brand_names=_BRAND_NAMES)
CATALOGUES = Catalogues(_HERE / "locale", "portal", beneath=CARD_CATALOGUES)
texts_for = CATALOGUES.texts_for

DateForm = Literal["long", "medium"]


@dataclass(frozen=True, slots=True)
class PortalView:
    """A subscription as its pages show it, in one customer's language.

    `path` is where the portal's pages are, and `takes_cards` whether one of them takes a card;
    `pays` says that all they are for is to pay what is open.
    """

    holding: Holding
    texts: Texts
    path: str
    takes_cards: bool = True
    pays: bool = False

    @property
    def card_path(self) -> str:
        """Where another card is given."""
        return self.path if self.pays else f"{self.path}/card"

    @property
    def period(self) -> str:
        """The days from which and to which the charge that is open is for."""
        subscription = self.holding.subscription
        length, count = subscription.package.terms.period, subscription.next_period + subscription.skipped
        until = occurrence(subscription.anchor, length, count, subscription.time_zone)
        return f"{self.day(subscription.paid_until)} – {self.day(until)}"

    @property
    def instead(self) -> str:
        """What is charged if that is no card, in a word; else empty."""
        return self.texts.get(wording.INSTEAD[self.holding.card.instead]) if self.holding.card.instead else ""

    @property
    def only_cards(self) -> bool:
        """Whether all that is to be said is about cards."""
        return self.takes_cards and not self.holding.card.instead

    @property
    def state(self) -> str:
        """The state in a word."""
        subscription = self.holding.subscription
        if self.failing:
            return self.texts.get(wording.FAILING)
        return self.texts.get(wording.PAUSED if subscription.paused else wording.STATES[subscription.state])

    @property
    def state_class(self) -> str:
        """The state as the page's style knows it."""
        subscription = self.holding.subscription
        return "failing" if self.failing else "paused" if subscription.paused else subscription.state.lower()

    @property
    def home(self) -> str:
        """The shop's first page; empty where it has none that a customer may be led to."""
        return front_page(self.holding.shop_url)

    @property
    def terms(self) -> str:
        """What was agreed, as it was said on the day when it was agreed; of another plan than that
        what is charged.
        """
        if self.holding.plan_changed:
            return renewals_in_words(self.holding.subscription.package.terms, self.texts)
        bare = not self.holding.subscription.has_card
        return terms_in_words(self.holding.subscription.package.terms, self.texts, without_card=bare)

    @property
    def awaits_card(self) -> bool:
        """Whether its trial began without a card, and none was given yet."""
        return self.holding.subscription.running and not self.holding.subscription.has_card

    @property
    def renewals(self) -> str:
        """What is charged again and again, once there is a card."""
        return renewals_in_words(self.holding.subscription.package.terms, self.texts)

    @property
    def charged_first(self) -> str:
        """The day of the first charge of one in its trial that has a card by then."""
        return self.day(self.holding.subscription.paid_until)

    @property
    def price(self) -> str:
        """What the next charge takes."""
        subscription = self.holding.subscription
        terms = subscription.as_charged_next.package.terms
        charge = charge_for(terms.price, self.holding.balance, terms.currency, live=subscription.live)
        return self.texts.money(charge, terms.currency)

    @property
    def plan_to_come(self) -> str:
        """What the subscription is from its next period on, or nothing."""
        change = self.holding.subscription.change
        if change is None or change.package is None:
            return ""
        return _plan_in_words(change.package, self.texts)

    @property
    def failing(self) -> bool:
        """Whether the last charge failed and another one is to come, or being made just now."""
        subscription = self.holding.subscription
        fails = subscription.failures > 0 and self.holding.sure_by is None
        return subscription.running and fails and subscription.change is None

    @property
    def change_due(self) -> str:
        """The day of the change that is to come, or an empty string."""
        change = self.holding.subscription.change
        return self.day(change.due_at) if change is not None else ""

    @property
    def charged_then(self) -> str:
        """The day of the next charge if the customer keeps or resumes it now, or nothing."""
        subscription = self.holding.subscription
        if subscription.change is None:
            return ""
        after = resumed(subscription, at=self.holding.now) if subscription.paused else kept(subscription)
        return self.day(after.date_next)

    @property
    def price_then(self) -> str:
        """What that charge takes."""
        terms = self.holding.subscription.package.terms
        return self.texts.money(terms.price, terms.currency)

    @property
    def sure_by(self) -> str:
        """The day by which a payment that is on its way has arrived, or an empty string."""
        return self.day(self.holding.sure_by)

    @property
    def stopped(self) -> bool:
        """Whether it ended because charges failed, rather than by somebody's wish."""
        return self.holding.subscription.date_stopped is not None

    @property
    def trial_ends(self) -> str:
        """The day on which a trial that runs ends, or an empty string."""
        subscription = self.holding.subscription
        trial = subscription.state is SubscriptionState.TRIAL and not subscription.paused
        runs = trial and subscription.anchor > self.holding.now
        return self.day(subscription.anchor) if runs else ""

    @property
    def paid_through(self) -> str:
        """The day until which what was paid (or tried) runs, or an empty string if that is over."""
        until = self.holding.paid_until
        return self.day(until) if until > self.holding.now else ""

    def day(self, at: datetime | None, form: DateForm = "long") -> str:
        """A date in the merchant's time zone, in the words of the page's language;
        empty if there is none.
        """
        if at is None:
            return ""
        local = at.astimezone(zone_named(self.holding.subscription.time_zone))
        return format_date(local, form, self.texts.date_locale)


def subscription_page(
    view: PortalView,
    payments: PastPayments,
    items: Sequence[Item] = (),
    *,
    paging: bool = False,
    said: str = "",
    again: str = "",
    query: str = "",
) -> HTMLResponse:
    """The subscription with its past payments, and the items that wait; `paging` says that the
    newest ones are on another page, `said` what came of what was asked (routes.py).

    `again` is where one that is over may be bought once more, and `query` that of its address.
    """
    values = {"payments": payments, "wording": wording, "receipts": RECEIPTS, "paging": paging, "said": said}
    waiting = {"query": query, "look_again": look_again(query)}
    return _page("subscription.html", view, **values, **waiting, again=again, items=items)


def receipt_page(view: PortalView, receipt: Receipt, items: Sequence[Item] = ()) -> HTMLResponse:
    """What proves one payment, to keep or to print, with the one-off items in it."""
    instead = receipt.card.instead
    by = view.texts.get(wording.INSTEAD[instead]) if instead else ""
    return _page("receipt.html", view, receipt=receipt, by=by, items=items)


def saved_cards_page(saved: SavedAtShop, texts: Texts, path: str) -> HTMLResponse:
    """The cards that a customer has saved at a shop, with what they agreed to."""

    def day(at: datetime | None) -> str:
        return "" if at is None else format_date(at.astimezone(zone_named(saved.time_zone)), "long", texts.date_locale)

    return secured(_PAGES.render("saved_cards.html", texts, held=saved, look=_look(saved), path=path, day=day))


def cancel_page(view: PortalView) -> HTMLResponse:
    """The question whether to cancel."""
    return _page("cancel.html", view)


def pause_page(view: PortalView, longest: int) -> HTMLResponse:
    """The question whether to pause, for some months at most or until it is resumed."""
    return _page("pause.html", view, longest=longest)


def plan_page(view: PortalView, plans: Sequence[Package], *, wrong: str = "", status: int = 200) -> HTMLResponse:
    """The question which of these plans it shall be, or how many; `wrong` is a number that is none
    (`quantity`), or that the bank has `declined`.
    """
    named = [(package.version_id, _plan_in_words(package, view.texts)) for package in plans]
    return secured(_render("plan.html", view, plans=named, wrong=wrong, most=MOST_UNITS), status=status)


def plan_preview_page(
    view: PortalView, package: Package, comes: Foreseen, *, at_once: bool, fields: Mapping[str, str]
) -> HTMLResponse:
    """What comes of a choice, to be agreed to."""
    return _page(
        "plan_preview.html",
        view,
        plan=_plan_in_words(package, view.texts),
        comes=comes,
        at_once=at_once,
        fields=fields,
        now=view.texts.money(comes.charged_now, comes.currency),
        next=view.texts.money(comes.next_amount, comes.currency),
    )


def card_page(
    view: PortalView,
    *,
    holder: str = "",
    expiry: str = "",
    errors: Mapping[str, str] | None = None,
    notice: str | None = None,
    status: int = 200,
    form_action: str = "",
    continue_url: str = "",
) -> HTMLResponse:
    """The form for another card, or for the one that pays what is open, with the errors
    (field to code of `card_words.CARD_ERRORS`) and the notice to show.

    `holder` and `expiry` come back as typed, number and CVC never do; `form_action` names where the
    bank's pages are, and `continue_url` leads to the acquirer's page, if it has one.
    """
    codes = dict([FIELD_OF_DECLINE[notice]] if notice in FIELD_OF_DECLINE else []) | dict(errors or {})
    shown = {name: view.texts.get(CARD_ERRORS[name][codes[name]]) for name in CARD_ERRORS if name in codes}
    html = _render(
        "pay.html" if view.pays else "card.html",
        view,
        errors=shown,
        notice=view.texts.get(notice_for(notice, _notices(view))) if notice else "",
        focus=next(iter(shown), "number" if notice and notice != PAGE_LEFT else ""),
        continue_url=continue_url,
        entered={"holder": holder, "expiry": expiry},
        wording=wording,
    )
    return secured(html, status=status, form_action=form_action)


def _notices(view: PortalView) -> Mapping[str, str]:
    """What is said of a card that was not taken: where there is no old one, nothing of it."""
    return wording.NOTICES | wording.FIRST_NOTICES if view.awaits_card else wording.NOTICES


def card_replaced_page(view: PortalView) -> HTMLResponse:
    """The new card is in place."""
    return _page("card_replaced.html", view)


def standing_page(view: PortalView, standing: Standing) -> HTMLResponse:
    """Why there is nothing to pay, or not just now."""
    title, text = (view.texts.get(words) for words in wording.STANDINGS[standing])
    return _page("standing.html", view, heading=title, text=text, done=standing is Standing.PAID)


def stopped_page(view: PortalView) -> HTMLResponse:
    """There were too many attempts (429): no form until some time has passed."""
    return secured(_render("stopped.html", view), status=429)


def checking_page(view: PortalView, *, waits: str = "", query: str = "") -> HTMLResponse:
    """The page to wait on while nobody knows what the bank said;
    it finds its own way, also without JavaScript.

    `waits` goes with its questions, and `query` is that of its address.
    """
    return _page("checking.html", view, waits=waits, again=look_again(query))


def not_found_page(texts: Texts) -> HTMLResponse:
    """There is no subscription behind this link."""
    return secured(_PAGES.render("not_found.html", texts), status=404)


def _plan_in_words(package: Package, texts: Texts) -> str:
    return f"{package.terms.name}, {renewals_in_words(package.terms, texts)}"


def _page(template: str, view: PortalView, **values: object) -> HTMLResponse:
    return secured(_render(template, view, **values))


def _render(template: str, view: PortalView, **values: object) -> str:
    held = view.holding
    known = {"view": view, "held": held, "look": _look(held), "subscription": held.subscription}
    return _PAGES.render(template, view.texts, **known, **values)


def _look(held: Holding | SavedAtShop) -> Look:
    return Look(held.merchant_name, brand_address(held.shop.merchant_id, held.branded_at), held.has_logo)
