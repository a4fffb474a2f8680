"""What a team types to make or change a payment link, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from paydesk.core.errors import Malformed
from paydesk.core.money import parse_typed
from paydesk.core.urls import check_url, is_systems_own
from paydesk.core.wording import plural, worded
from paydesk.domain.payments.requests import LONGEST
from paydesk.domain.selling.payment_links import Offer
from paydesk.domain.selling.plans import LONGEST_ABOUT, MOST_PLANS, Plan, Plans, by_price, in_order
from paydesk.domain.subscriptions.subscription_terms import Package

LONGEST_TITLE, LONGEST_DESCRIPTION = 255, 2000
MOST_AT_ONCE = 1000
MOST_SALES = 1_000_000
_JOINERS = str.maketrans("", "", "\u200c\u200d")


@dataclass(frozen=True, slots=True)
class Typed:
    """What somebody typed to make or change a link: prices of its own, or with `sells_packages` the
    `versions` that were ticked, and by their packages' ids what is said `about` each.
    """

    title: str = ""
    description: str = ""
    currency: str = ""
    price: str = ""
    monthly_price: str = ""
    yearly_price: str = ""
    most_quantity: str = "1"
    most_sales: str = ""
    success_url: str = ""
    coupons: bool = True
    picture: bytes = field(default=b"", repr=False)
    remove_picture: bool = False
    sells_packages: bool = False
    versions: tuple[int, ...] = ()
    about: Mapping[int, str] = field(default_factory=dict)


FIELDS = (
    *("title", "description", "picture", "currency", "price", "monthly_price", "yearly_price", "packages"),
    *("most_quantity", "most_sales", "success_url"),
)
"""What an error may name."""


def read_offer(typed: Typed, currency: str, *, several: bool) -> Offer:
    """What was typed of a link with prices of its own, checked; without a picture. `several`:
    whether the shop sells subscriptions to several of a thing.

    Raises: Malformed, naming the field.
    """
    prices = {
        name: _price(text, currency, name) if text else None
        for name, text in (
            ("price", typed.price),
            ("monthly_price", typed.monthly_price),
            ("yearly_price", typed.yearly_price),
        )
    }
    given = [name for name, price in prices.items() if price is not None]
    if not given:
        raise Malformed(worded("a price is missing: once, or by month or year"), "price")
    if "price" in given and len(given) > 1:
        raise Malformed(worded("it is either paid once, or by month or year; make another link for the other"), "price")
    return _offer(typed, currency, recurring="price" not in given, several=several, plans=None, **prices)


def read_page(typed: Typed, packages: Mapping[int, Package], currency: str, *, several: bool) -> Offer:
    """What was typed of a page that sells packages, by the versions that it names, checked; without
    a picture. Its currency is theirs if none is given.

    Raises: Malformed, naming the field.
    """
    plans = _plans(typed, packages)
    currencies = {packages[version].terms.currency for version in plans.versions} | ({currency} if currency else set())
    if len(currencies) > 1:
        raise Malformed(
            worded(
                "what is sold on one page has one currency, not %(currencies)s",
                currencies=" and ".join(sorted(currencies)),
            ),
            "packages",
        )
    return _offer(typed, currencies.pop(), recurring=True, several=several, plans=plans)


def _plans(typed: Typed, packages: Mapping[int, Package]) -> Plans:
    """The packages with their versions, in the order of the page."""
    if not typed.versions:
        raise Malformed(worded("choose what is sold: at least one version of a package"), "packages")
    unknown = [version for version in typed.versions if version not in packages]
    if unknown:
        raise Malformed(
            worded("version %(unknown)s is none that can be sold here; open the page again", unknown=unknown[0]),
            "packages",
        )
    chosen: dict[int, list[Package]] = {}
    for one in in_order(packages[version] for version in dict.fromkeys(typed.versions)):
        chosen.setdefault(one.id, []).append(one)
    if len(chosen) > MOST_PLANS:
        raise Malformed(
            plural(
                "a page has at most %(count)s package",
                "a page has at most %(count)s packages side by side",
                count=MOST_PLANS,
            ),
            "packages",
        )
    for versions in chosen.values():
        if len({one.terms.period for one in versions}) < len(versions):
            raise Malformed(
                worded(
                    "two versions of %(name)s are paid as often as each other; choose one", name=versions[0].terms.name
                ),
                "packages",
            )
    return Plans(
        tuple(
            Plan(tuple(one.version_id for one in versions), _about(typed, versions[0]))
            for versions in sorted(chosen.values(), key=by_price)
        )
    )


def _about(typed: Typed, package: Package) -> str:
    return _lines(typed.about.get(package.id, ""), "packages", LONGEST_ABOUT)


def _offer(
    typed: Typed,
    currency: str,
    *,
    recurring: bool,
    several: bool,
    plans: Plans | None,
    price: Decimal | None = None,
    monthly_price: Decimal | None = None,
    yearly_price: Decimal | None = None,
) -> Offer:
    """What links of all kinds have in common."""
    quantity = _number(typed.most_quantity or "1", "most_quantity", MOST_AT_ONCE)
    if quantity > 1 and recurring and not several:
        raise Malformed(
            worded("a subscription is bought one at a time; allow several of a thing under Settings, Shop"),
            "most_quantity",
        )
    return Offer(
        title=_line(typed.title),
        description=_lines(typed.description, "description", LONGEST_DESCRIPTION),
        picture="",
        large_picture="",
        currency=currency,
        price=price,
        monthly_price=monthly_price,
        yearly_price=yearly_price,
        most_quantity=quantity,
        most_sales=_number(typed.most_sales, "most_sales", MOST_SALES) if typed.most_sales else None,
        success_url=_success_url(typed.success_url),
        coupons=typed.coupons,
        plans=plans,
    )


def _price(text: str, currency: str, name: str) -> Decimal:
    try:
        return parse_typed(text, currency, "the price")
    except Malformed as error:
        raise Malformed(error.message, name) from error


def _number(text: str, name: str, most: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > len(str(most)) or not 1 <= int(text) <= most:
        raise Malformed(worded("this must be a whole number from 1 to %(most)s", most=most), name)
    return int(text)


def _line(text: str) -> str:
    """A title that can't change how the words around it read."""
    line = " ".join(text.split())
    if not line:
        raise Malformed(worded("the title is missing"), "title")
    if len(line) > LONGEST_TITLE or not line.translate(_JOINERS).isprintable():
        raise Malformed(
            plural(
                "the title must be at most %(count)s character of plain text",
                "the title must be at most %(count)s characters of plain text",
                count=LONGEST_TITLE,
            ),
            "title",
        )
    return line


def _lines(text: str, field: str, most: int) -> str:
    said = "\n".join(text.splitlines()).strip()
    if len(said) > most or not said.replace("\n", "").translate(_JOINERS).isprintable():
        raise Malformed(
            plural(
                "the description must be at most %(count)s character of plain text",
                "the description must be at most %(count)s characters of plain text",
                count=most,
            ),
            field,
        )
    return said


def _success_url(text: str) -> str:
    if not text:
        return ""
    if len(text) > (most := LONGEST.get("success_url", 0)):
        raise Malformed(
            plural(
                "the address has more than %(count)s character",
                "the address has more than %(count)s characters",
                count=most,
            ),
            "success_url",
        )
    try:
        scheme = check_url(text, "the address")
    except Malformed as error:
        raise Malformed(error.message, "success_url") from error
    if is_systems_own(scheme):
        raise Malformed(worded("the address must begin with https, or your app's own scheme"), "success_url")
    return text
