"""Receiving a checkout form: who signed it, is it genuine, is it complete,
and then a checkout for it.

Source: interface.md §2.1 and §3.1. Moves no money.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.adapters.vault import Vault
from paydesk.core.errors import Conflict, Malformed, NotFound, PaydeskError, TooMany
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.hash_threads import guesses
from paydesk.domain.merchants.ignored_fields import SentWith, note_ignored
from paydesk.domain.merchants.keys import (
    KeyScope,
    KeyUnreadable,
    Signer,
    find_signer,
    is_private_key,
    readable_pairs_of,
    refuse_in_a_copy,
    require_scope,
)
from paydesk.domain.merchants.live_amounts import require_taken
from paydesk.domain.merchants.refused_forms import WrongHash, log_rejected_form
from paydesk.domain.merchants.sellers import Selling
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.verifying import is_genuine
from paydesk.domain.payments.diagnosis import diagnose, hashed_string
from paydesk.domain.payments.fetching_pictures import Fetched
from paydesk.domain.payments.line_items import FIELD as LINE_ITEMS
from paydesk.domain.payments.line_items import AskedItem
from paydesk.domain.payments.picturing import Pictures, pictured
from paydesk.domain.payments.requests import (
    COUPON,
    KNOWN_FIELDS,
    QUANTITY,
    CheckoutRequest,
    in_quantity,
    read_coupon,
    read_items,
    read_request,
    read_required,
    read_sign_version,
)
from paydesk.domain.payments.storing import open_checkout
from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP
from paydesk_client.signature import MalformedForm, Value, parse_form

LARGEST_BODY = 64 * 1024
"""Bytes of a form."""

_MOST_PAIRS = 10
"""A merchant's key pairs, newest first, that are tried on a wrong hash."""


@dataclass(frozen=True, slots=True)
class Reception:
    """What receiving forms needs.

    `serving` tells the acquirers that take a shop's payments in a currency, `reduced` the checkout
    at the price that a coupon leaves (None: it can't be used now), and `pictures` opens what
    fetches the pictures of an order's lines (None: they are left out).
    """

    database: Database
    vault: Vault
    forms_per_minute: int
    serving: Callable[[Shop, str], Awaitable[Sequence[Acquirer]]]
    reduced: Callable[[Database, Link, str, datetime], Awaitable[Link | None]] | None = None
    pictures: Pictures | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """A form that was accepted: the checkout's link, its token in an address,
    and what was asked for; `coupon_over` if it brought a coupon that can't be used now.
    """

    link: Link
    token: str = field(repr=False)
    request: CheckoutRequest
    coupon_over: bool = False


async def receive_form(desk: Reception, body: bytes, *, client_address: str, sandbox: bool, now: datetime) -> Received:
    """Accept a signed form and open its checkout, or refuse it and leave a line
    for the merchant's programmer.

    `body` is form-encoded; `client_address` is counted against the limit; `sandbox` makes
    everything test data.

    Raises: Malformed (400), WrongHash, Forbidden (403, the latter for its scopes),
        NotFound (404, unknown api_key), Conflict (409, the merchant is not live),
        TooMany (429), KeyUnreadable (503).
    """
    form = read_form(body)
    public_key = read_required(form, "api_key")
    signer = await _find_signer(desk, public_key, client_address, now=now)
    if signer is None:
        raise await _unknown(desk, public_key)
    shop = Shop(signer.merchant_id, live=not sandbox and not signer.test_mode)
    if signer.forms_this_minute > desk.forms_per_minute:
        error = TooMany("too many checkout forms from this address; wait a minute", retry_after=60 - now.second)
        # One line tells the programmer; one for each form would let a flood push everything else
        # out of the log.
        if signer.forms_this_minute == desk.forms_per_minute + 1:
            await log_rejected_form(desk.database, shop, error, form, now, secret=signer.private_key)
        raise error
    try:
        await _verify(desk, form, signer, shop, client_address, now)
        require_scope(signer.scopes, KeyScope.sign)
        request = read_request(form)
        if signer.signs_quantities:
            request = in_quantity(request, form)
        coupon = read_coupon(form) if signer.signs_coupons else ""
        asked = read_items(form, request) if signer.signs_line_items else ()
        if shop.live:
            refuse_live(signer)
            refuse_beyond_acquirers(shop, request, signer, await desk.serving(shop, request.currency))
    except TooMany:
        raise
    except PaydeskError as error:
        await log_rejected_form(desk.database, shop, error, form, now, secret=signer.private_key)
        raise
    shop_now = now if shop.live else now + signer.test_clock
    items, fetched = await pictured(desk.database, desk.pictures, shop, asked, now=now)
    ignored = form.keys() - _known(signer) | _left_out(asked, fetched)
    await note_ignored(desk.database, shop, SentWith.FORM, ignored, now=now)
    link = await open_checkout(desk.database, shop, request, form=form, key_id=signer.key_id, now=shop_now, items=items)
    reduced: Link | None = link
    if coupon and desk.reduced is not None:
        try:
            reduced = await desk.reduced(desk.database, link, coupon, now)
        except Malformed as error:
            await log_rejected_form(desk.database, shop, error, form, now, secret=signer.private_key)
            raise
    link = reduced or link
    return Received(link, link.token(desk.vault), request, coupon_over=reduced is None)


def _left_out(asked: Sequence[AskedItem], fetched: Mapping[str, Fetched]) -> set[str]:
    """Which pictures could not be had and why, for the shop's programmer: who sends a form is
    answered with a page.
    """
    return {
        f"{LINE_ITEMS}[{place}].picture_url: {fetched[one.picture_url].problem}"
        for place, one in enumerate(asked)
        if one.picture_url in fetched and fetched[one.picture_url].problem
    }


def _known(signer: Signer) -> frozenset[str]:
    """What means something in a form of an account."""
    switched = (
        (COUPON, signer.signs_coupons),
        (QUANTITY, signer.signs_quantities),
        (LINE_ITEMS, signer.signs_line_items),
    )
    return KNOWN_FIELDS | {name for name, on in switched if on}


async def _find_signer(desk: Reception, public_key: str, client_address: str, *, now: datetime) -> Signer | None:
    """Whose key a form names; that it can't be opened is an alarm.

    Raises: KeyUnreadable.
    """
    try:
        return await find_signer(desk.database, desk.vault, public_key.replace("\x00", ""), client_address, now)
    except KeyUnreadable as error:
        # A flood of forms counts for no more than may be sent.
        if error.forms_this_minute <= desk.forms_per_minute:
            shop = Shop(error.merchant_id, live=True)
            alarm = Alarm(
                AlarmKind.key_unreadable,
                f"key {error.key_id}",
                noted("its forms are refused: %(why)s", why=error.why),
                shop,
            )
            await raise_alarms(desk.database, [alarm], now=now)
        raise


def read_form(body: bytes) -> dict[str, Value]:
    """The fields of a form-encoded body, nested as PHP would nest them.

    Raises: Malformed.
    """
    try:
        return parse_form(body)
    except MalformedForm as error:
        raise Malformed(str(error), *([error.field] if error.field else [])) from error


async def _unknown(desk: Reception, sent: str) -> NotFound:
    """What to say of an api_key that nobody has; it is not repeated, for it may be a secret."""
    if await is_private_key(desk.database, desk.vault, sent.strip()):
        return NotFound(
            "api_key is a private key: send the public key of your account as api_key, and keep the private one on "
            "your server; whoever saw this form has it now, so make new keys in your account"
        )
    return NotFound(
        f"api_key is unknown: what was sent has {len(sent)} characters; copy the public key from your account, not the "
        "private one"
    )


async def _verify(
    desk: Reception, form: dict[str, Value], signer: Signer, shop: Shop, client_address: str, now: datetime
) -> None:
    given = read_required(form, "hash")
    version = read_sign_version(form)
    try:
        genuine = await is_genuine(desk.database, signer, form, given, version, client=client_address, now=now)
    except MalformedForm as error:
        raise Malformed(str(error), error.field) from error
    if genuine:
        return
    if guesses.is_full:
        raise WrongHash()
    if shop.live:
        raise WrongHash(await guesses.do(lambda: hashed_string(form, signer.private_key, version)))
    others = await readable_pairs_of(desk.database, desk.vault, signer.merchant_id, most=_MOST_PAIRS)
    found = await guesses.do(lambda: diagnose(form, given, signer.private_key, version, others))
    raise WrongHash(found.hashed, found.suspect)


def refuse_beyond_acquirers(
    shop: Shop, request: CheckoutRequest, seller: Selling, acquirers: Sequence[Acquirer]
) -> None:
    """Refuse what none of those that serve can take: decimals that none counts, and on their own
    pages not everything can be paid that can be with a card typed on ours.

    Raises: Conflict, saying why.
    """
    terms = request.terms
    later = () if terms is None else (terms.price, terms.first_amount)
    require_taken(shop, request.currency, request.amount, *later)
    reasons = [_beyond(request, seller, acquirer) for acquirer in acquirers]
    if reasons and all(reasons):
        # The last one is that of the settings.
        raise Conflict(
            f"live payments are made on {acquirers[-1].name}'s own page here, which {reasons[-1]}; test payments are "
            "not concerned"
        )


def _beyond(request: CheckoutRequest, seller: Selling, acquirer: Acquirer) -> str:
    """What keeps an order from being paid on an acquirer's own page; empty if nothing does."""
    if acquirer.capabilities.cards:
        return ""
    if request.terms is not None:
        return "" if acquirer.capabilities.stored else "keeps nothing to charge a subscription by"
    holds = not seller.shipped_goods or acquirer.hold_period >= TIME_TO_SHIP
    return "" if holds else "holds no money for goods that are shipped"


def refuse_live(seller: Selling) -> None:
    """Refuse a live checkout of a merchant that has not gone live, or is suspended,
    or whose database is a copy.

    Raises: Conflict, saying how to test instead.
    """
    refuse_in_a_copy(live=True, in_a_copy=seller.in_a_copy)
    if seller.suspended:
        raise Conflict(
            "this shop can't take payments at the moment: the account is suspended, see the reason in the business "
            "account; tests go on at the sandbox base"
        )
    if seller.went_live_at is None:
        raise Conflict(
            "this merchant is not live yet: live payments need an accepted business profile and a live acquirer; "
            "switch test mode on, or post the form to the sandbox base"
        )
