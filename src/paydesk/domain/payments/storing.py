"""Verified requests are stored as checkouts, each once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg
import msgspec

from paydesk.core.errors import Busy
from paydesk.core.storable import masked_json
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.customer_links import Link, LinkTo
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import LIFETIME
from paydesk.domain.payments.line_items import LineItem, stored
from paydesk.domain.payments.requests import CheckoutRequest
from paydesk.domain.subscriptions.packages import agree_package
from paydesk_client.signature import Value

queries = load_statements(__package__ or "")

_AGREED_ANEW = 3
"""How often a package is agreed to whose test side is being started anew."""


@dataclass(frozen=True, slots=True)
class Sale:
    """What a checkout is to take from a payment link: it does so when somebody begins to pay."""

    link_id: int
    quantity: int


async def open_checkout(
    database: Database,
    shop: Shop,
    request: CheckoutRequest,
    *,
    form: Mapping[str, Value],
    key_id: int,
    now: datetime,
    digest: bytes | None = None,
    items: Sequence[LineItem] = (),
    sale: Sale | None = None,
) -> Link:
    """Store a verified request and return its checkout's link; the same request gets the same one.
    Moves no money.

    Requests are told apart by their `digest`, that of the form if none is given. Raises: Busy while
        the shop's test side is being started anew.
    """
    digest = digest or _digest(form, key_id)
    for _ in range(_AGREED_ANEW):
        try:
            row_id = await _stored(
                database, shop, request, digest=digest, form=form, key_id=key_id, items=items, sale=sale, now=now
            )
        except asyncpg.ForeignKeyViolationError:
            continue
        return Link(LinkTo.CHECKOUT, shop, row_id, digest.hex())
    raise Busy("the test side is being started anew; try again")


async def _stored(
    database: Database,
    shop: Shop,
    request: CheckoutRequest,
    *,
    digest: bytes,
    form: Mapping[str, Value],
    key_id: int,
    items: Sequence[LineItem],
    sale: Sale | None,
    now: datetime,
) -> int:
    """The id of a request's checkout, stored now or before."""
    row_id: int = await queries.open_checkout(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        request_digest=digest,
        merchant_order_id=request.merchant_order_id,
        amount=request.amount,
        currency=request.currency,
        description=request.description,
        success_url=request.success_url,
        pingback_url=request.pingback_url,
        sign_version=request.sign_version,
        key_id=key_id,
        parameters=masked_json({name: value for name, value in form.items() if name != "hash"}),
        email=request.email,
        first_name=request.first_name,
        last_name=request.last_name,
        country=request.country,
        package_version_id=await agree_package(database, shop, request.terms, now=now) if request.terms else None,
        first_amount=request.terms.first_amount if request.terms else None,
        line_items=stored(items),
        payment_link_id=sale.link_id if sale else None,
        sale_quantity=sale.quantity if sale else None,
        now=now,
        expires_at=now + LIFETIME,
    )
    return row_id


def _digest(form: Mapping[str, Value], key_id: int) -> bytes:
    """Tell requests apart by all that was posted, in whatever order,
    and by the key that signed it.
    """
    return hashlib.sha256(msgspec.json.encode([key_id, form], order="sorted")).digest()
