"""What names the merchant of a request that nothing was found for here, and so its cell."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from ipaddress import IPv6Network
from typing import Final, NamedTuple

from starlette.datastructures import Headers, QueryParams
from starlette.types import Scope

from paydesk.adapters.acquirers.notices import said_way_back
from paydesk.adapters.vault import Vault
from paydesk.core.errors import PaydeskError
from paydesk.domain.cells.directory import Kind
from paydesk.domain.merchants.customer_links import merchant_in
from paydesk.domain.payments.hurrying import named
from paydesk.domain.payments.receiving import read_form
from paydesk.web.cells.places import Asker
from paydesk.web.visits import NOTHING_HERE

FORM, SIGNED_CALL = "/payment/form", "/api/v1/deliveries"
"""What is signed with a key that its body names."""

_LINK: Final = re.compile(r"/(?:checkout|buy|portal|portal/cards|portal/pay/[0-9]{1,9})/([lt][^/]+)(?:/.*)?")
_OF_MERCHANT: Final = re.compile(r"/(?:brand|picture/[^/]+)/([0-9]{1,16})/.+")
_NOTIFICATION: Final = re.compile(r"/acquirers/([^/]+)/notify")


class Named(NamedTuple):
    """Something by which the directory finds a cell."""

    kind: Kind
    value: str

    def __str__(self) -> str:
        """The same for a log, in which no private key stands."""
        return self.kind if self.kind is Kind.private_key else f"{self.kind} {self.value}"


def may_be_elsewhere(scope: Scope, status: int) -> bool:
    """Whether an answer says that what the request is about was not found here; by path and headers
    alone, for each answer.
    """
    if NOTHING_HERE in scope:
        return True
    path: str = scope["path"]
    if status == 401:
        return path.startswith(("/api/", "/payment/"))
    if status == 400:
        # Another cell may have an account of that name, and the secret by which it is signed.
        return _NOTIFICATION.fullmatch(path) is not None
    return status == 404 and (path == FORM or _path_names(path))


def _path_names(path: str) -> bool:
    return any(pattern.fullmatch(path) for pattern in (_LINK, _OF_MERCHANT, _NOTIFICATION))


def named_by_address(scope: Scope, vault: Vault) -> Named | None:
    """What its path or its headers name."""
    path = scope["path"]
    if link := _LINK.fullmatch(path):
        return _merchant(merchant_in(link[1]))
    if of := _OF_MERCHANT.fullmatch(path):
        return _merchant(int(of[1]))
    if notification := _NOTIFICATION.fullmatch(path):
        asked = QueryParams(scope["query_string"])
        about = named(vault, notification[1], asked.get("of", ""), asked.get("token", ""))
        return _merchant(about.shop.merchant_id if about else None)
    key = Headers(scope=scope).get("x-apikey")
    return Named(Kind.private_key, key) if key else None


def named_by_body(scope: Scope, body: bytes) -> Named | None:
    """What its body names: the key that has signed it, or the link that an acquirer's page leads
    back to, which is believed in nothing else.
    """
    path = scope["path"]
    if _NOTIFICATION.fullmatch(path):
        return None if "token" in QueryParams(scope["query_string"]) else _in_link(said_way_back(body))
    if path == FORM:
        return _public_key(_form(body).get("api_key"))
    if path == SIGNED_CALL:
        return _public_key((_json(body) or _form(body)).get("public_key"))
    return None


def asker_of(scope: Scope, named: Named, client: str, *, is_verified: bool) -> Asker:
    """Whose a request is that is to be passed on; `client` is its `visits.client_address`.

    An acquirer sends all its accounts' notifications from few addresses, so one that was verified
    here is its account's. All else is its address's: anybody can name any merchant, and open some.
    A merchant counts by each of its names apart, since strangers know its links and public key:
    what they take up by these leaves its private key alone.
    """
    notification = _NOTIFICATION.fullmatch(scope["path"]) if is_verified else None
    sender = f"account {notification[1]}" if notification else f"address {_site(client)}"
    return Asker(sender, f"{named.kind} {named.value}")


def _site(client: str) -> str:
    """An address, an IPv6 one by its /48: that, or a /56, is what who rents a server is given, and
    holds any number of the /64 by which addresses count elsewhere.
    """
    try:
        return str(IPv6Network((client, 48), strict=False))
    except ValueError:
        return client


def _in_link(url: str) -> Named | None:
    """The merchant of a customer's link, whatever stands before its path."""
    link = _LINK.search(url)
    return _merchant(merchant_in(link[1])) if link else None


def _merchant(merchant_id: int | None) -> Named | None:
    return Named(Kind.merchant, str(merchant_id)) if merchant_id else None


def _public_key(value: object) -> Named | None:
    if not isinstance(value, str) or not value:
        return None
    return Named(Kind.public_key, value.encode("utf-8", "replace").decode())


def _form(body: bytes) -> Mapping[str, object]:
    try:
        return read_form(body)
    except PaydeskError:
        return {}


def _json(body: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
