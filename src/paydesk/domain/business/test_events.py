"""Test events: one made-up pingback, signed with the shop's key, sent at once and kept nowhere.
Moves no money.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import structlog

from paydesk.adapters.vault import Vault
from paydesk.core.errors import NotFound, TooMany
from paydesk.core.wording import plural
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.business.made_up_events import make_up
from paydesk.domain.merchants.keys import private_key_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.destinations import Account, destination
from paydesk.domain.pingbacks.reasons import Why, why
from paydesk.domain.pingbacks.recording import storable
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.pingbacks.stamping import masked
from paydesk.domain.pingbacks.telling import tell

queries = load_statements(__package__ or "", "test_events.sql")
log = structlog.get_logger()

A_MINUTE = 10
"""Test events that one merchant may send in a minute."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a side's pingbacks go (`url`, None if that is not set), all URLs of the account,
    and how it signs.
    """

    url: str | None
    own_urls: frozenset[str]
    sign_version: str
    body_format: str
    key_id: int
    live: bool


@dataclass(frozen=True, slots=True)
class TestEvent:
    """What to send, and where: an event of `EVENTS`, version 1 or 2 of the signature."""

    __test__ = False

    event: str
    url: str
    sign_version: str


@dataclass(frozen=True, slots=True)
class SentTestEvent:
    """What was sent (private key masked) and what came back;
    `why` is None if it was acknowledged.
    """

    request_headers: Mapping[str, str]
    request_body: str
    status: int | None
    response_body: str
    error: str
    duration_ms: int
    why: Why | None


@dataclass(frozen=True, slots=True)
class _Signing:
    """A merchant's URLs, and how its pingbacks are signed."""

    account_url: str | None
    test_pingback_url: str | None
    went_live_at: datetime | None
    pingback_format: str
    sign_version: str
    key_id: int


async def find_target(database: Database, shop: Shop) -> Target:
    """Where the shop's pingbacks would go now, and how they would be signed. Raises: NotFound."""
    merchant = record_if_any(_Signing, await queries.find_target(database, merchant_id=shop.merchant_id))
    if merchant is None:
        raise NotFound(f"there is no merchant {shop.merchant_id}")
    account = Account(merchant.account_url, merchant.test_pingback_url, merchant.went_live_at)
    own = frozenset(url for url in (account.account_url, account.test_pingback_url) if url)
    url = destination(None, account, live=shop.live)
    return Target(url, own, merchant.sign_version, merchant.pingback_format, merchant.key_id, shop.live)


async def count_test_event(database: Database, merchant_id: int, *, now: datetime) -> None:
    """Count one test event; `now` is real time.

    Raises: TooMany once the merchant has used up those of this minute.
    """
    minute = now.replace(second=0, microsecond=0)
    if await queries.count_test_event(database, merchant_id=merchant_id, minute=minute) > A_MINUTE:
        raise TooMany(
            plural(
                "at most %(count)s test event is sent in a minute; wait a little and try again",
                "at most %(count)s test events are sent in a minute; wait a little and try again",
                count=A_MINUTE,
            ),
            retry_after=60 - now.second,
        )


async def send(
    database: Database,
    vault: Vault,
    sender: PingbackSender,
    target: Target,
    merchant_id: int,
    wanted: TestEvent,
    *,
    now: datetime,
) -> SentTestEvent:
    """Send a test event and wait for the answer; nothing is stored.
    `now` (real time) is when it is said to happen.
    """
    private_key = await private_key_of(database, vault, merchant_id, target.key_id)
    payload = make_up(wanted.event, now)
    body, answer = await sender.try_out(
        wanted.url,
        payload,
        sign_version=wanted.sign_version,
        body_format=target.body_format if wanted.sign_version == "v1" else "json",
        private_key=private_key,
        live=target.live,
    )
    tell(log, "a test event was answered", payload, wanted.url, answer)
    said = storable(answer.body_start)
    # An answer that is longer than what is read of it is no `ok`, whatever it begins with.
    reason = why(answer.status, answer.error or "", said) or (None if answer.complete else Why.BODY)
    return SentTestEvent(
        masked(answer.sent),
        body.decode(),
        answer.status,
        said,
        answer.error or "",
        round(answer.duration * 1000),
        reason,
    )
