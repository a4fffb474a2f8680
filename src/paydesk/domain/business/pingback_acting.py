"""What a team's member does about pingbacks: by permission, and kept in the audit log.
Moves no money.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from paydesk.core.errors import Forbidden, Malformed
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.statements import Connection
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require, require_recent
from paydesk.domain.business import test_events
from paydesk.domain.business.made_up_events import EVENTS
from paydesk.domain.business.test_events import SentTestEvent, Target, TestEvent
from paydesk.domain.merchants.keys import KeyScope, require_scope
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks import resending_by_hand
from paydesk.domain.pingbacks.destinations import parse_pingback_url
from paydesk.domain.pingbacks.resending_by_hand import Exhausted, Pingback
from paydesk.domain.pingbacks.sending import PingbackSender


async def resend_pingback(
    database: Database, session: Session, pingback_id: int, *, url: str = "", shop_now: datetime, now: datetime
) -> Pingback:
    """Have a pingback sent once more; `shop_now` is the shop's time, `now` is real.

    With a `url` that is none of the account's own it takes whoever may set those, and for version
    1, whose header is the private key itself, the password as well.
    Raises: Forbidden; ConfirmationNeeded; Malformed for what is no URL; NotFound, Conflict as
        `resending_by_hand.resend` does.
    """
    shop = require(session, Permission.resend_pingback)
    elsewhere = await find_elsewhere(database, shop, pingback_id, url)
    if elsewhere.is_foreign:
        require(session, Permission.manage_integration)
        if elsewhere.sign_version == "v1":
            require_recent(session, now=now)
    return await resend_logged(
        database, shop, session.actor, pingback_id, url=elsewhere.url, shop_now=shop_now, now=now
    )


async def resend_by_key(
    database: Database,
    shop: Shop,
    scopes: frozenset[KeyScope],
    pingback_id: int,
    *,
    url: str,
    client_address: str,
    shop_now: datetime,
    now: datetime,
) -> Pingback:
    """Have a pingback sent once more for a program that has a key pair.

    To a `url` that is none of the account's own only a key that reads sends, and nothing of version
    1: that would hand out the private key that signs it, which need not be the caller's.

    Raises: Forbidden, Malformed, NotFound, Conflict.
    """
    elsewhere = await find_elsewhere(database, shop, pingback_id, url)
    if elsewhere.is_foreign:
        require_scope(scopes, KeyScope.read)
        if elsewhere.sign_version == "v1":
            raise Forbidden(
                "a pingback of version 1 carries the private key itself, so the API sends it to the account's own "
                "URLs alone; send it from the account"
            )
    actor = Actor(None, f"API, {client_address}")
    return await resend_logged(database, shop, actor, pingback_id, url=elsewhere.url, shop_now=shop_now, now=now)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Where a pingback is to be sent instead (None: where it goes anyway), whether that is none of
    the account's own URLs, and how it is signed.
    """

    url: str | None
    is_foreign: bool
    sign_version: str


async def find_elsewhere(database: Database, shop: Shop, pingback_id: int, url: str) -> Elsewhere:
    """What another URL for a pingback comes to. Raises: Malformed, NotFound."""
    pingback, _ = await resending_by_hand.find_tried_pingback(database, shop, pingback_id)
    wanted = parse_pingback_url(url.strip(), "the URL", "url")
    if not wanted or wanted == await resending_by_hand.goes_to(database, shop, pingback_id):
        return Elsewhere(None, is_foreign=False, sign_version=pingback.sign_version)
    own = (await test_events.find_target(database, shop)).own_urls
    return Elsewhere(wanted, wanted not in own, pingback.sign_version)


async def resend_logged(
    database: Database,
    shop: Shop,
    actor: Actor,
    pingback_id: int,
    *,
    url: str | None,
    shop_now: datetime,
    now: datetime,
) -> Pingback:
    """Have a pingback sent once more, and keep who wanted it, and where it goes.

    Raises: NotFound, Conflict.
    """
    async with database.acquire() as connection, connection.transaction():
        pingback = await resending_by_hand.resend(connection, shop, pingback_id, url=url, now=shop_now)
        await _log(connection, shop, actor, pingback, now=now)
    return pingback


async def resend_if_failed(
    database: Database, shop: Shop, actor: Actor, pingback_id: int, *, shop_now: datetime, now: datetime
) -> bool:
    """Do what `resend_logged` does with one that has failed; False if it is not so any more.

    Raises: NotFound, Conflict.
    """
    async with database.acquire() as connection, connection.transaction():
        pingback = await resending_by_hand.resend_failed(connection, shop, pingback_id, now=shop_now)
        if pingback is not None:
            await _log(connection, shop, actor, pingback, now=now)
    return pingback is not None


async def _log(connection: Connection, shop: Shop, actor: Actor, pingback: Pingback, *, now: datetime) -> None:
    subject, details = f"pingback {pingback.id}", {"event": pingback.event, "url": pingback.url}
    await record(connection, actor, Action.pingback_resent, now=now, shop=shop, subject=subject, details=details)


async def resend_failed(
    database: Database, session: Session, wanted: Exhausted, *, shop_now: datetime, now: datetime
) -> int:
    """Have the failed pingbacks that are wanted sent once more; returns how many.
    Times as for `resend_pingback`.

    A second call finds none that is still failed, and leaves no second line in the log.

    Raises: Forbidden.
    """
    shop = require(session, Permission.resend_pingback)
    async with database.acquire() as connection, connection.transaction():
        resent = await resending_by_hand.resend_exhausted(connection, shop, wanted, now=shop_now)
        if resent:
            details = {"pingbacks": resent, "event": wanted.event or "any"}
            subject = "failed pingbacks"
            await record(
                connection, session.actor, Action.pingback_resent, now=now, shop=shop, subject=subject, details=details
            )
    return resent


async def send_test_event(
    gate: Gate, session: Session, sender: PingbackSender, wanted: TestEvent, *, now: datetime
) -> SentTestEvent:
    """Send a made-up pingback and wait for the answer; `now` is real time.

    Where the account's own pingbacks go, who may resend them may send one. To any other URL it
    takes whoever may set those URLs, and for version 1, whose header is the private key itself, the
    password as well.

    Raises: Forbidden; ConfirmationNeeded; Malformed for another event or version, or a URL that is
        none; TooMany.
    """
    shop = require(session, Permission.resend_pingback)
    target = await test_events.find_target(gate.database, shop)
    _check(session, target, wanted, now)
    await test_events.count_test_event(gate.database, shop.merchant_id, now=now)
    # The log has it before anybody else hears of it: who dies while waiting for the answer has sent
    # it all the same.
    details = {"event": wanted.event, "sign_version": wanted.sign_version}
    await record(
        gate.database, session.actor, Action.test_event_sent, now=now, shop=shop, subject=wanted.url, details=details
    )
    return await test_events.send(gate.database, gate.vault, sender, target, shop.merchant_id, wanted, now=now)


def _check(session: Session, target: Target, wanted: TestEvent, now: datetime) -> None:
    if wanted.event not in EVENTS:
        raise Malformed(worded("choose among %(events)s", events=", ".join(EVENTS)), "event")
    if wanted.sign_version not in ("v1", "v2"):
        raise Malformed(worded("choose v1 or v2"), "sign_version")
    if not parse_pingback_url(wanted.url, "the URL", "url"):
        raise Malformed(worded("say where to send it: an http or https URL"), "url")
    if wanted.url not in target.own_urls:
        require(session, Permission.manage_integration)
        if wanted.sign_version == "v1":
            require_recent(session, now=now)
