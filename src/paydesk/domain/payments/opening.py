"""Opening a checkout that a shop asks for by the API, without a signed form.

What it may ask for is what a form may, read as strictly and, since nobody sends more than they
mean here, with no field that is not known. Moves no money.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from paydesk.core.errors import Conflict, Malformed
from paydesk.core.storable import masked_json
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.callers import Caller
from paydesk.domain.merchants.sellers import find_seller
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import Checkout, find_own_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.fetching_pictures import Fetched
from paydesk.domain.payments.line_items import FIELD as LINE_ITEMS
from paydesk.domain.payments.line_items import AskedItem, read_line_items, stored
from paydesk.domain.payments.picturing import Pictures, pictured
from paydesk.domain.payments.receiving import refuse_beyond_acquirers, refuse_live
from paydesk.domain.payments.requests import (
    COUPON,
    PREFILLS,
    QUANTITY,
    RECURRING_FIELDS,
    CheckoutRequest,
    in_quantity,
    prefill,
    read_coupon,
    read_request,
)
from paydesk.domain.payments.storing import open_checkout

queries = load_statements(__package__ or "", "opening.sql")

REQUIRED = ("merchant_order_id", "amount", "currency", "description")
TEXTS = (
    *REQUIRED,
    "success_url",
    "pingback_url",
    "email",
    "first_name",
    "last_name",
    "country",
    *PREFILLS,
    *RECURRING_FIELDS,
    QUANTITY,
    COUPON,
    "later_charges",
    "later_charges_limit",
    "sign_version",
)
"""What may be asked for, each a text named and read as in a form."""

FIELDS = (*TEXTS, LINE_ITEMS)
USUAL_VERSION = "v2"
"""How pingbacks are signed if nothing else is asked for; a form's are v1 then, for old shops."""

_COUNTRY = re.compile(r"[A-Za-z]{2}")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a shop asks for, checked: its texts as a form's fields, and the lines of the order."""

    form: Mapping[str, str]
    request: CheckoutRequest
    items: tuple[AskedItem, ...]

    @property
    def coupon(self) -> str:
        """The coupon that it brings, empty without one."""
        return read_coupon(self.form)

    @property
    def in_quantity(self) -> bool:
        """Whether it says of how many its subscription is."""
        return bool(self.form.get(QUANTITY))


def read_asked(fields: Mapping[str, object]) -> Asked:
    """Check every field of a checkout that is asked for.

    Raises: Malformed for the first one that is unknown, missing or wrong.
    """
    unknown = [name for name in fields if name not in FIELDS]
    if unknown:
        raise Malformed(f'there is no field "{unknown[0][:40]}", only {", ".join(FIELDS)}', unknown[0])
    form = {"sign_version": USUAL_VERSION, **{name: _text(fields, name) for name in fields if name != LINE_ITEMS}}
    request = in_quantity(read_request(form), form)
    _check_prefills(form)
    return Asked(form, request, read_line_items(fields.get(LINE_ITEMS), request.amount, request.currency))


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields[name]
    if not isinstance(value, str):
        raise Malformed(f'{name} must be a text in quotes, such as "10.00" for an amount', name)
    return value


def _check_prefills(form: Mapping[str, str]) -> None:
    """A form may be wrong in what only prefills the page; who writes a program wants to know."""
    for name in PREFILLS:
        given = form.get(name, "").strip()
        if given and not prefill(given, name):
            raise Malformed(f"{name} has more than {PREFILLS[name]} characters, or holds a card number", name)
    country = form.get("country", "")
    if country and not _COUNTRY.fullmatch(country):
        raise Malformed('country must be a code of two letters, such as "DE"', "country")


async def open_asked(
    desk: Desk, pictures: Pictures, caller: Caller, asked: Asked, *, request_key: str, real_now: datetime
) -> tuple[Checkout, Mapping[str, Fetched]]:
    """Open the checkout that a caller asks for, once for its key, and again if it had expired;
    says what came of each picture.

    Raises: Conflict if the shop takes no live payments, or not such ones, or sells one of a thing
        alone, and if the key came with another request.
    """
    shop, database, request = caller.shop, desk.database, asked.request
    if shop.live or asked.in_quantity:
        await _require_sold(desk, shop, asked, real_now)
    items, fetched = await pictured(database, pictures, shop, asked.items, now=real_now)
    link = await open_checkout(
        database,
        shop,
        request,
        form=asked.form,
        key_id=caller.key_id,
        now=caller.now,
        digest=hashlib.sha256(f"api checkout {request_key}".encode()).digest(),
        items=items,
    )
    assert link.row_id is not None
    if not await _is_what_was_asked(database, shop, link.row_id, asked):
        raise Conflict("this Idempotency-Key came with another request before; use a new key for each new request")
    return await find_own_checkout(database, shop, link.row_id, now=real_now), fetched


async def _require_sold(desk: Desk, shop: Shop, asked: Asked, real_now: datetime) -> None:
    """Raises: Conflict if the shop may not sell this, or not so."""
    seller, request = await find_seller(desk.database, shop.merchant_id, now=real_now), asked.request
    if asked.in_quantity and not seller.signs_quantities:
        raise Conflict(f"{QUANTITY} is not switched on; allow several of a thing under Settings, Shop in your account")
    if shop.live:
        refuse_live(seller)
        refuse_beyond_acquirers(shop, request, seller, await desk.serving(shop, request.currency))


async def _is_what_was_asked(database: Database, shop: Shop, checkout_id: int, asked: Asked) -> bool:
    """Whether a checkout is for just this, but for its pictures, which may come or not."""
    items = stored([one.item for one in asked.items])
    return bool(
        await queries.is_what_was_asked(
            database,
            merchant_id=shop.merchant_id,
            live=shop.live,
            id=checkout_id,
            parameters=masked_json(asked.form),
            line_items=items,
        )
    )
