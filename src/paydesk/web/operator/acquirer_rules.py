"""Rules that choose an account: added and taken away after password and second factor, and tried on
an order, which says where it would go, by which rule and why.
"""

from __future__ import annotations

from decimal import Decimal

from starlette.responses import Response

from paydesk.core.cards import Brand
from paydesk.core.errors import Malformed, NotFound
from paydesk.core.money import parse_currency
from paydesk.core.wording import worded
from paydesk.domain.accounts.second_factor import ask_again
from paydesk.domain.acquirers.routing import Order, Rule, Step, list_rules
from paydesk.domain.merchants.merchant import find_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.acquirer_rules import add_rule, in_words, parse_bound, remove_rule
from paydesk.web.console.guards import Access, Section, field_errors
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE

section = Section(FACE)
_ACQUIRERS = "/operator/acquirers"
_ADD = "/operator/rules/new"
_REMOVE = "/operator/rules/remove"
_TRY = "/operator/rules/try"
_FIELDS = ("account", "merchant", "currency", "country", "brand", "least", "most", "share", "code", "rule")
_OF_AN_ORDER = ("merchant", "side", "currency", "country", "brand", "amount", "order")
_WHOLE = 255
"""Characters of a field, as of the longest, an order's own number: of one that is cut to fewer,
`AUT`, another one would be left, `AU`.
"""


@section.page(_ADD, needs=Access.operator, recent=True)
async def show_new(visit: Visit) -> Response:
    """The form for another rule; the password is asked for again before."""
    return _new(visit, {})


@section.action(_ADD, needs=Access.operator, recent=True)
async def add(visit: Visit) -> Response:
    """Add a rule behind the others, once the second factor is proved again."""
    known = set(visit.services.desk.acquirers)
    try:
        visit.form.require_only(*_FIELDS)
        rule = _typed(visit)
        await ask_again(visit.gate, visit.session, visit.form.text("code", 40), now=visit.now)
        await add_rule(visit.database, visit.session.operator, rule, known, now=visit.now)
    except (Malformed, NotFound) as error:
        return _new(visit, _errors(visit, error), error.status)
    return visit.go(_ACQUIRERS, visit.texts.get("Added. New orders follow it at once."))


@section.page(_REMOVE, needs=Access.operator, recent=True)
async def show_remove(visit: Visit) -> Response:
    """The form that takes a rule away."""
    return await _removal(visit, {})


@section.action(_REMOVE, needs=Access.operator, recent=True)
async def remove(visit: Visit) -> Response:
    """Take a rule away, once the second factor is proved again."""
    try:
        visit.form.require_only("rule", "code")
        await ask_again(visit.gate, visit.session, visit.form.text("code", 40), now=visit.now)
        await remove_rule(visit.database, visit.session.operator, visit.form.number("rule") or 0, now=visit.now)
    except (Malformed, NotFound) as error:
        return await _removal(visit, _errors(visit, error), error.status)
    return visit.go(_ACQUIRERS, visit.texts.get("The rule is gone. Orders that were tried stay where they are."))


@section.page(_TRY, needs=Access.operator)
async def try_rules(visit: Visit) -> Response:
    """Where an order would go that was not tried yet, and why. Moves no money."""
    steps: list[Step] = []
    errors: dict[str, str] = {}
    if visit.form.text("merchant", 20):
        try:
            steps = await visit.services.desk.preview(await _order(visit))
        except (Malformed, NotFound) as error:
            errors = _errors(visit, error)
            errors = {"merchant" if isinstance(error, NotFound) else name: said for name, said in errors.items()}
    typed = {name: visit.form.text(name, _WHOLE) for name in _OF_AN_ORDER}
    sides = [("live", visit.texts.get("Live")), ("test", visit.texts.get("Test"))]
    return visit.page(
        "rules_try.html",
        status=400 if errors else 200,
        steps=steps,
        typed=typed,
        errors=errors,
        sides=sides,
        brands=_brands(),
        action=_TRY,
    )


def _new(visit: Visit, errors: dict[str, str], status: int = 200) -> Response:
    return visit.page(
        "rule_new.html",
        status=status,
        typed={name: visit.form.text(name, _WHOLE) for name in _FIELDS if name != "code"},
        accounts=[(name, name) for name in sorted(visit.services.desk.acquirers)],
        brands=_brands(),
        errors=errors,
        action=_ADD,
    )


async def _removal(visit: Visit, errors: dict[str, str], status: int = 200) -> Response:
    rules = [(one.id, f"{one.id}: {in_words(one)} → {one.account}") for one in await list_rules(visit.database)]
    return visit.page("rule_remove.html", status=status, rules=rules, errors=errors, action=_REMOVE)


def _typed(visit: Visit) -> Rule:
    """The rule as it was typed. Raises: Malformed."""
    form = visit.form
    share = form.text("share", _WHOLE) or "100"
    if not (share.isascii() and share.isdigit()):
        raise Malformed(worded("a share is from 1 to 100 per cent"), "share")
    merchant_id = form.number("merchant")
    if form.text("merchant", _WHOLE) and merchant_id is None:
        raise Malformed(worded("this must be the merchant's id"), "merchant")
    bounds = [parse_bound(text, name) if (text := form.text(name, _WHOLE)) else None for name in ("least", "most")]
    brand, country = form.text("brand", _WHOLE), form.text("country", _WHOLE).upper()
    currency, account = form.text("currency", _WHOLE).upper(), form.text("account", _WHOLE)
    return Rule(0, account, merchant_id, currency, country, brand, bounds[0], bounds[1], int(share))


async def _order(visit: Visit) -> Order:
    """The order that the rules are tried on. Raises: Malformed, NotFound without its merchant."""
    form = visit.form
    merchant = await find_merchant(visit.database, form.number("merchant") or 0)
    shop = Shop(merchant.id, live=form.text("side", 4) != "test")
    currency = parse_currency(form.text("currency", _WHOLE).upper() or "USD", "currency")
    amount = parse_bound(text, "amount") if (text := form.text("amount", _WHOLE)) else Decimal(10)
    country, brand = form.text("country", _WHOLE).upper(), form.text("brand", _WHOLE)
    return Order(shop, form.text("order", _WHOLE), currency, amount, country, brand)


def _errors(visit: Visit, error: Malformed | NotFound) -> dict[str, str]:
    return field_errors(visit, error, *_FIELDS, *_OF_AN_ORDER)


def _brands() -> list[tuple[str, str]]:
    return [("", "–"), *((str(brand), str(brand)) for brand in Brand)]
