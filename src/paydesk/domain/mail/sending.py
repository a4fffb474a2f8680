"""Sending the mails that are due: claimed under a lease, written, handed over, recorded;
delayed ones again later.

A mail is handed over at least once: a process that dies between the server's "ok" and its own
record leaves a mail that is sent again when the lease has run out, with the same Message-ID, by
which mail programs fold the second one away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec
import structlog

from paydesk.adapters.mail import Letter, MailDelayed, Mailer, MailRefused
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.mail.kinds import CUSTOMER_KINDS, LINK_KINDS, MERCHANT_KINDS
from paydesk.domain.mail.metrics import MAILS
from paydesk.domain.mail.queueing import open_facts
from paydesk.domain.merchants.customer_links import Link, LinkTo
from paydesk.domain.merchants.imprints import NO_IMPRINT, Imprint, imprint_of
from paydesk.domain.merchants.shop import Shop
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "sending.sql")
log = structlog.get_logger()

PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720))
"""After the n-th try that failed; about a day in all, then the mail is given up."""

TOO_OLD = timedelta(days=3)
"""Nobody wants an older mail: it waited for a mail server that was not configured."""

KEPT = timedelta(days=30)
DAYS_KEPT = timedelta(days=2)
LEASE = timedelta(minutes=3)
"""Longer than handing over may take by far, so that no two senders ever have one mail."""

TEAM_SHARE = 10
"""So many times as many mails as to another address go to one that teams read:
a busy shop's alerts."""

PAUSE = 1.0
"""Seconds between looks when nothing is due."""

HOUSEKEEPING = 600.0
"""Seconds between looks at what may be forgotten."""


@dataclass(frozen=True, slots=True)
class Caps:
    """Most mails a day (UTC) to one address, in one merchant's name, and by one person's doing;
    None is no cap.
    """

    per_address: int | None = None
    per_merchant: int | None = None
    per_person: int | None = None


OVER = {
    "address": "over the day's cap of mails to one address (PAYDESK_MAILS_PER_ADDRESS)",
    "merchant": "over the day's cap of one merchant's mails (PAYDESK_MAILS_PER_MERCHANT)",
    "person": "over the day's cap of mails by one person's doing (PAYDESK_MAILS_PER_PERSON)",
}
"""Why a mail was not sent, by the cap, as operators read it."""


@dataclass(frozen=True, slots=True)
class DueMail:
    """A mail to be written: its facts as they were queued, with secrets opened;
    live is None beside any merchant.

    `accent`, `branded_at` and which logos there are is the merchant's look, `imprint` says who it
    is.
    """

    merchant_id: int
    live: bool | None
    id: int
    kind: str
    recipient: str
    language: str
    facts: Mapping[str, object] = field(repr=False)
    attempts: int
    created_at: datetime
    merchant_name: str
    merchant_email: str
    time_zone: str
    accent: str = ""
    branded_at: datetime | None = None
    has_logo: bool = False
    has_dark_logo: bool = False
    imprint: Imprint = NO_IMPRINT


@dataclass(frozen=True, slots=True)
class ClaimedMail:
    """A mail under this sender's lease, its facts still as JSON; `over` is the cap that it is over,
    if any.
    """

    merchant_id: int
    live: bool | None
    id: int
    kind: str
    recipient: str
    language: str
    facts: str = field(repr=False)
    attempts: int
    created_at: datetime
    merchant_name: str
    merchant_email: str
    accent: str
    branded_at: datetime | None
    has_logo: bool
    has_dark_logo: bool
    imprint: list[str] | None
    time_zone: str
    over: str


class _Portal(msgspec.Struct, frozen=True):
    """The subscription to whose portal a mail leads; one without a seed has a link of before.
    Of one whose charge for a `period` is open, the mail leads to where that is paid.
    """

    id: int
    seed: str | None = None
    period: int | None = None


class _Shopper(msgspec.Struct, frozen=True):
    """The shopper to whose own page a mail leads."""

    id: int
    seed: str


class _Told(msgspec.Struct, frozen=True):
    """What the sender itself reads among a mail's facts."""

    portal: _Portal | None = None
    shopper: _Shopper | None = None


Write = Callable[[DueMail], Letter]


class MailSender:
    """Sends what is due; any number of them may run on one database."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        mailer: Mailer,
        write: Write,
        *,
        in_flight: int = 8,
        caps: Caps = Caps(),
    ) -> None:
        """`write` makes a letter of a mail; `in_flight` mails are handed over at a time,
        `caps` a day.
        """
        self._database = database
        self._vault = vault
        self._mailer = mailer
        self._write = write
        self._in_flight = in_flight
        self._caps = caps
        self._sending: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Send until told to stop; what is being handed over then is finished first."""
        await asyncio.gather(
            repeat("mails", self._send_some, stop, rest=PAUSE, wake=self._room, due=True),
            repeat("forgetting of mails", self._forget, stop, rest=HOUSEKEEPING, due=True),
        )
        await self.finish()

    async def _send_some(self) -> bool:
        """Start what is due, as far as there is room;
        the connections rest when there is nothing to do.
        """
        started = await self.start_due(utc_now())
        if not started and not self._sending:
            await self._mailer.rest()
        return started > 0

    async def _forget(self) -> None:
        await queries.forget_mails(self._database, before=utc_now() - KEPT)
        await queries.forget_days(self._database, before=(utc_now() - DAYS_KEPT).date())

    async def finish(self) -> None:
        """Wait until nothing is being handed over any more, and let go of the connections."""
        await self.settle()
        await self._mailer.rest()

    async def settle(self) -> None:
        """Wait until nothing is being handed over any more."""
        while self._sending:
            await asyncio.wait(self._sending)

    async def start_due(self, now: datetime) -> int:
        """Claim as many that are due by `now` (UTC) as may still be handed over at once,
        and start each; returns how many.
        """
        room = self._in_flight - len(self._sending)
        if room <= 0:
            return 0
        claimed = queries.claim(
            self._database,
            now=now,
            most=room,
            lease=LEASE,
            merchant_kinds=[str(kind) for kind in MERCHANT_KINDS],
            link_kinds=[str(kind) for kind in LINK_KINDS],
            customer_kinds=[str(kind) for kind in CUSTOMER_KINDS],
            per_address=self._caps.per_address,
            per_team_address=self._caps.per_address and self._caps.per_address * TEAM_SHARE,
            per_merchant=self._caps.per_merchant,
            per_person=self._caps.per_person,
        )
        mails = await records_of(ClaimedMail, claimed)
        for mail in mails:
            task = asyncio.create_task(self._send(mail))
            self._sending.add(task)
            task.add_done_callback(self._is_sent)
        return len(mails)

    def _is_sent(self, task: asyncio.Task[None]) -> None:
        """There is room for another."""
        self._sending.discard(task)
        self._room.set()

    async def _send(self, mail: ClaimedMail) -> None:
        """Hand one mail over and record what came of it;
        what can't be recorded is left to the lease.
        """
        try:
            outcome = await self._hand_over(mail)
            MAILS.labels(outcome).inc()
        except Exception as error:
            log.warning("what became of a mail is not recorded", mail_id=mail.id, why=type(error).__name__)

    async def _hand_over(self, mail: ClaimedMail) -> str:
        now = utc_now()
        if now - mail.created_at > TOO_OLD:
            return await self._give_up(mail, f"older than {TOO_OLD.days} days, so it was not sent")
        if mail.over:
            await queries.record_failure(self._database, **_named(mail), why=OVER[mail.over])
            log.warning("a mail is over a cap", mail_id=mail.id, kind=mail.kind, cap=mail.over)
            return "capped"
        if not mail.recipient:
            await queries.record_failure(self._database, **_named(mail), why="the address is not confirmed")
            return "withheld"
        try:
            await self._mailer.send(self._write(self._opened(mail)))
        except MailRefused as error:
            return await self._give_up(mail, str(error))
        except MailDelayed as error:
            return await self._delay(mail, str(error), now)
        except Exception as error:
            # A mail that can't be written may be mended by a new release; its facts don't belong
            # into the log.
            log.error("a mail could not be written", mail_id=mail.id, kind=mail.kind, why=type(error).__name__)
            return await self._delay(mail, f"could not be written: {type(error).__name__}", now)
        await queries.record_sent(self._database, merchant_id=mail.merchant_id, id=mail.id, now=utc_now())
        return "sent"

    def _opened(self, mail: ClaimedMail) -> DueMail:
        facts = open_facts(self._vault, msgspec.json.decode(mail.facts))
        return DueMail(
            merchant_id=mail.merchant_id,
            live=mail.live,
            id=mail.id,
            kind=mail.kind,
            recipient=mail.recipient,
            language=mail.language,
            facts=facts | self._links(mail, msgspec.convert(facts, _Told)),
            attempts=mail.attempts,
            created_at=mail.created_at,
            merchant_name=mail.merchant_name,
            merchant_email=mail.merchant_email,
            time_zone=mail.time_zone,
            accent=mail.accent,
            branded_at=mail.branded_at,
            has_logo=mail.has_logo,
            has_dark_logo=mail.has_dark_logo,
            imprint=imprint_of(mail.imprint),
        )

    def _links(self, mail: ClaimedMail, told: _Told) -> dict[str, str]:
        """The tokens of links, which rest in no mail."""
        if told.shopper is None:
            return self._portal(mail, told.portal)
        shop = Shop(mail.merchant_id, bool(mail.live))
        link = Link(LinkTo.SHOPPER, shop, told.shopper.id, told.shopper.seed)
        return {"shopper_token": link.token(self._vault), **self._portal(mail, told.portal)}

    def _portal(self, mail: ClaimedMail, portal: _Portal | None) -> dict[str, str]:
        """The token of the portal's link, or of the one that pays what is open, which rest in no
        mail; none of one that an older version made.
        """
        if portal is None or not portal.seed:
            return {}
        shop = Shop(mail.merchant_id, bool(mail.live))
        if portal.period is not None:
            paying = Link(LinkTo.PAYING, shop, portal.id, portal.seed, period=portal.period)
            return {"paying": f"{portal.period}/{paying.token(self._vault)}"}
        link = Link(LinkTo.PORTAL, shop, portal.id, portal.seed)
        return {"portal_token": link.token(self._vault)}

    async def _delay(self, mail: ClaimedMail, why: str, now: datetime) -> str:
        """Try again after a pause that grows; after the last one the mail is given up."""
        if mail.attempts > len(PAUSES):
            return await self._give_up(mail, why)
        due_at = now + PAUSES[mail.attempts - 1]
        await queries.record_delay(self._database, **_named(mail), due_at=due_at, why=why)
        log.warning("a mail is sent again later", mail_id=mail.id, kind=mail.kind, attempts=mail.attempts)
        return "delayed"

    async def _give_up(self, mail: ClaimedMail, why: str) -> str:
        await queries.record_failure(self._database, **_named(mail), why=why)
        log.error("a mail was given up", mail_id=mail.id, kind=mail.kind, attempts=mail.attempts)
        return "failed"


def _named(mail: ClaimedMail) -> dict[str, object]:
    return {"merchant_id": mail.merchant_id, "id": mail.id, "attempts": mail.attempts}
