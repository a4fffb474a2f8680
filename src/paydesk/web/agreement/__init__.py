"""A subscription's terms in words, in the customer's language:
every door that shows them says the same.

The texts have a catalogue of their own, so that a page, a mail and the customer's portal share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from gettext import NullTranslations
from pathlib import Path

from paydesk.core.money import fits
from paydesk.core.periods import Period
from paydesk.domain.subscriptions.subscription_terms import Terms
from paydesk.web.texts import Catalogues, Texts

_CATALOGUES = Catalogues(Path(__file__).parent / "locale", "agreement")


def terms_in_words(terms: Terms, texts: Texts, *, without_card: bool = False) -> str:
    """What is paid when and how it ends:
    `30.00 USD today for 1 month, then 10.00 USD every 6 months until you cancel`.

    One line without a full stop, in the language and the number format of `texts`. A trial that
    begins `without_card` goes on only if one is given.
    """
    words = _words(texts)
    if without_card and terms.trial is not None:
        later = {"time": _length(terms.trial.period, words), "later": renewals_in_words(terms, texts)}
        return words.gettext("Free for %(time)s, after that only if you give a card: %(later)s") % later
    price = _price(terms, terms.price, texts)
    if terms.trial is None and terms.limit == 1:
        once = {"price": price, "time": _length(terms.period, words)}
        return words.gettext("%(price)s today for %(time)s, and nothing after that") % once
    reduced = _reduced(terms, price, words, paid_today=terms.trial is None)
    return _in_turn([_now(terms, price, texts, words), *reduced, _later(terms, texts, words)], words)


def renewals_in_words(terms: Terms, texts: Texts) -> str:
    """What is charged again and again, and until when: `10.00 USD every 6 months until you cancel`,
    as `terms_in_words` says it, for one that has begun.
    """
    words = _words(texts)
    reduced = _reduced(terms, _price(terms, terms.price, texts), words, paid_today=False)
    return _in_turn([*reduced, _later(terms, texts, words)], words)


def consent_in_words(
    terms: Terms, merchant_name: str, texts: Texts, *, on_page: bool = False, without_card: bool = False
) -> str:
    """The sentence that a customer agrees to before subscribing; it names who charges, what for,
    how much and when.

    `on_page`: what is charged they choose later, on a page of the acquirer's; `without_card`:
    nothing is, unless they give a card some day.
    """
    agreed = terms_in_words(terms, texts, without_card=without_card)
    said = {"merchant": merchant_name, "package": terms.name, "terms": agreed}
    words = _words(texts)
    if without_card:
        return words.gettext("I agree to try “%(package)s” by %(merchant)s: %(terms)s.") % said
    if on_page:
        return words.gettext("I agree that %(merchant)s charges what I pay with for “%(package)s”: %(terms)s.") % said
    return words.gettext("I agree that %(merchant)s charges this card for “%(package)s”: %(terms)s.") % said


def rhythm_in_words(period: Period, texts: Texts) -> str:
    """How often a price is paid: `every month`, `every 6 months`."""
    return _every(period, _words(texts))


def length_in_words(period: Period, texts: Texts) -> str:
    """A length of time: `14 days`, `1 month`."""
    return _length(period, _words(texts))


def _price(terms: Terms, amount: Decimal, texts: Texts) -> str:
    """An amount of the terms, with what one of several comes to where that is a price to the digit:
    what a coupon leaves is of all of them together.
    """
    whole = texts.money(amount, terms.currency)
    unit = amount / terms.quantity
    if terms.quantity == 1 or not fits(unit, terms.currency):
        return whole
    return f"{terms.quantity} × {texts.money(unit, terms.currency)} = {whole}"


def _words(texts: Texts) -> NullTranslations:
    return _CATALOGUES.texts_for(texts.language).translations


def _now(terms: Terms, price: str, texts: Texts, words: NullTranslations) -> str:
    """What happens at the checkout."""
    if terms.trial is None and (free := _free_for(terms)) is not None:
        return words.gettext("Free for %(time)s") % {"time": _length(free, words)}
    if terms.trial is None:
        return words.gettext("%(price)s today") % {"price": price}
    time = _length(terms.trial.period, words)
    if not terms.trial.price:
        return words.gettext("Free for %(time)s") % {"time": time}
    trial_price = _price(terms, terms.trial.price, texts)
    return words.gettext("%(price)s today for %(time)s") % {"price": trial_price, "time": time}


def _free_for(terms: Terms) -> Period | None:
    """How long a coupon leaves nothing to pay from the beginning on; None if it leaves something,
    or never ends.
    """
    if terms.price or terms.discount is None or terms.discount.periods is None:
        return None
    return replace(terms.period, length=terms.discount.periods * terms.period.length)


def _in_turn(said: Sequence[str], words: NullTranslations) -> str:
    """One after the other: `…, then …, then …`."""
    now, *later = said
    return words.gettext("%(now)s, then %(later)s") % {"now": now, "later": _in_turn(later, words)} if later else now


def _reduced(terms: Terms, price: str, words: NullTranslations, *, paid_today: bool) -> list[str]:
    """For how long a coupon holds that some day does not any more; of what is paid at the checkout
    only what comes after that.
    """
    if terms.discount is None or terms.discount.periods is None:
        return []
    left = terms.discount.periods - paid_today
    if not left or (paid_today and not terms.price):
        return []
    time = _length(replace(terms.period, length=left * terms.period.length), words)
    if left == 1:
        return [words.gettext("%(price)s for %(time)s") % {"price": price, "time": time}]
    said = {"price": price, "every": _every(terms.period, words), "time": time}
    return [words.gettext("%(price)s %(every)s for %(time)s") % said]


def _later(terms: Terms, texts: Texts, words: NullTranslations) -> str:
    """What is charged without the customer, once no coupon holds any more, and until when;
    a trial that costs something counts as a payment.
    """
    lasting = terms.discount is None or terms.discount.periods is None
    price = _price(terms, terms.price if lasting else terms.list_price, texts)
    if terms.limit == 1:
        once = {"price": price, "time": _length(terms.period, words)}
        return words.gettext("%(price)s for %(time)s, and nothing after that") % once
    said = {"price": price, "every": _every(terms.period, words)}
    if not terms.limit:
        return words.gettext("%(price)s %(every)s until you cancel") % said
    count = terms.limit + (1 if terms.trial is not None and terms.trial.price else 0)
    counted = words.ngettext(
        "%(price)s %(every)s, %(count)s payment in all", "%(price)s %(every)s, %(count)s payments in all", count
    )
    return counted % {**said, "count": count}


def _length(period: Period, words: NullTranslations) -> str:
    """A length of time: `14 days`, `1 month`."""
    number = period.length
    counted = {
        "day": words.ngettext("%(number)s day", "%(number)s days", number),
        "week": words.ngettext("%(number)s week", "%(number)s weeks", number),
        "month": words.ngettext("%(number)s month", "%(number)s months", number),
        "year": words.ngettext("%(number)s year", "%(number)s years", number),
    }
    return counted[period.unit] % {"number": number}


def _every(period: Period, words: NullTranslations) -> str:
    """A rhythm: `every month`, `every 6 months`. One is said without its number,
    whatever a language's plurals are.
    """
    number = period.length
    single = {
        "day": words.gettext("every day"),
        "week": words.gettext("every week"),
        "month": words.gettext("every month"),
        "year": words.gettext("every year"),
    }
    if number == 1:
        return single[period.unit]
    counted = {
        "day": words.ngettext("every %(number)s day", "every %(number)s days", number),
        "week": words.ngettext("every %(number)s week", "every %(number)s weeks", number),
        "month": words.ngettext("every %(number)s month", "every %(number)s months", number),
        "year": words.ngettext("every %(number)s year", "every %(number)s years", number),
    }
    return counted[period.unit] % {"number": number}
