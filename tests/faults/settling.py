"""Lets the time pass that settling needs: the janitors' questions, the end of leases,
the merchant's resends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from unittest.mock import patch

from tests.faults.stage import Stage
from tests.processes import PATIENCE

from paydesk.adapters.acquirers.simulator import RemoteSimulator
from paydesk.adapters.outbound import OutboundClient
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected
from paydesk.domain.acquirers.opening import OpenAcquirers
from paydesk.domain.billing import charging
from paydesk.domain.billing.card_lookups import settle_card_changes
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.deliveries.deadlines import act_on_due
from paydesk.domain.merchants.idempotent_calls import LEASE, RENEWAL
from paydesk.domain.payments import janitor
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.pingbacks.schedule import MOST_ATTEMPTS, RESEND_INTERVAL
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.subscriptions.retry_times import UNREACHED_PAUSES
from paydesk.equipment import live_acquirer, payment_desk, sender_settings, vault_of
from paydesk.settings import Settings

ROUNDS = 8
AT_ONCE = 16
KEYS_ARE_VOID = timedelta(minutes=3)
LATER = (0, 2, 30, 200, 400)
"""Hours; nothing is looked up any more a week after it was given up."""


TRANSFERS_ARE_DUE = """
with due as (
    update hosted_page h
       set sure_by = now() - $2::interval
      from payment p
     where (p.merchant_order_id = $1 or $1 is null) and p.state = 'pending' and h.attempt_id = p.attempt_id
 returning h.attempt_id
)
update payment_attempt a
   set lookup_at = now() - $2::interval
  from due
 where a.id = due.attempt_id and a.lookup_at > now()
"""
"""The days of transfers are over, those of an order or of all."""


@dataclass(frozen=True, slots=True)
class Hereafter:
    """A worker of our own, whose clock may be set ahead."""

    database: Database
    desk: Desk
    sender: PingbackSender

    async def ask_the_bank(self, ahead: timedelta) -> None:
        """Do what the janitor would do by then; its clock,
        the merchants' and the bank's all say so.
        """
        await _end_leases(self.database)
        with patch.object(janitor, "utc_now", lambda: utc_now() + ahead):
            while await janitor.settle_due(self.desk, now=utc_now() + ahead):
                await _end_leases(self.database)

    async def let_transfers_end(self) -> None:
        """Let the days be over that customers' banks take, and hear how they were used."""
        await self.database.execute(TRANSFERS_ARE_DUE, None, timedelta(hours=1))
        await self.ask_the_bank(KEYS_ARE_VOID)

    async def finish_movements(self, ahead: timedelta) -> None:
        """Void what was forgotten, and do what the janitor of captures, voids and refunds would do
        by then.
        """
        await act_on_due(self.desk, real_now=utc_now())
        await _end_leases(self.database)
        while await finish_movements(self.desk, now=utc_now() + ahead):
            await _end_leases(self.database)

    async def charge_again(self) -> None:
        """Charge renewals that turned out never to have reached the bank, until none is left."""
        ahead = 2 * KEYS_ARE_VOID + UNREACHED_PAUSES[-1]
        for _ in range(ROUNDS):
            await self.ask_the_bank(KEYS_ARE_VOID)
            with patch.object(charging, "utc_now", lambda: utc_now() + ahead):
                if not await charging.BillingRun(self.desk).charge_due():
                    return

    async def read_on(self, ahead: timedelta) -> None:
        """Read what the bank says of disputes, and ask for the card changes that are open."""
        await _end_leases(self.database)
        await read_disputes(self.desk, now=utc_now())
        while await settle_card_changes(self.desk, now=utc_now() + ahead):
            await _end_leases(self.database)

    async def resend(self) -> None:
        """Send what is due, again and again, as long as the schedule allows."""
        for attempt in range(MOST_ATTEMPTS + 1):
            await _end_leases(self.database)
            await self.sender.send_due_once(utc_now() + attempt * (RESEND_INTERVAL + timedelta(minutes=1)))


async def settle(stage: Stage) -> None:
    """Have the customers who wait come back, with time passing between their visits,
    until all that can end has ended.

    The bank and the web service run; the workers do not.
    """
    stage.receiver.moody = False
    for payload in stage.receiver.accepted:
        stage.staff.hear(payload)
    stage.receiver.tell = stage.staff.hear
    await _let_time_pass(stage, stage.cast.hides_for)
    # Whoever plays on is not disturbed by the staff before the next settling.
    stage.receiver.tell = lambda payload: None


async def _let_time_pass(stage: Stage, hides_for: float) -> None:
    async with hereafter(stage.settings) as later:
        for _ in range(ROUNDS):
            # The bank's memory is the one thing that keeps real time.
            await asyncio.sleep(hides_for)
            await later.ask_the_bank(KEYS_ARE_VOID)
            await later.let_transfers_end()
            await stage.crowd.come_back(AT_ONCE)
            if not stage.crowd.unpaid:
                break
        await asyncio.sleep(hides_for)
        await later.charge_again()
        # What the staff have begun belongs to this hour: a bank holds no money for weeks.
        await _let_staff_finish(stage, later)
        for hours in LATER:
            await stage.let_pass(hours)
            await later.ask_the_bank(KEYS_ARE_VOID + timedelta(hours=hours))
        await later.resend()
        await _let_staff_finish(stage, later)
        await asyncio.sleep(hides_for)
        for hours in LATER:
            await stage.let_pass(hours)
            await later.finish_movements(KEYS_ARE_VOID + timedelta(hours=hours))
        await later.resend()
    await stage.let_pass(0)


async def _let_staff_finish(stage: Stage, later: Hereafter) -> None:
    async with asyncio.timeout(PATIENCE):
        while stage.staff.is_busy:
            await later.finish_movements(KEYS_ARE_VOID)
            await asyncio.sleep(0.2)


@asynccontextmanager
async def hereafter(settings: Settings) -> AsyncIterator[Hereafter]:
    """A worker of our own, as the settings say."""
    vault = vault_of(settings)
    bank, live = RemoteSimulator(settings.simulator_url), live_acquirer(settings)
    outbound = OutboundClient(allow=settings.outbound_networks(), timeout=settings.pingback_timeout)
    try:
        async with connected(settings.database_url) as database:
            desk = payment_desk(settings, database, vault, bank, live)
            added = desk.acquirers
            assert isinstance(added, OpenAcquirers)
            await added.look(database)
            yield Hereafter(database, desk, PingbackSender(database, vault, outbound, sender_settings(settings)))
            await added.close()
    finally:
        await bank.close()
        if live is not None:
            await live.close()
        await outbound.close()


async def _end_leases(database: Database) -> None:
    """Leases of the dead run out in the database's own time, which nobody can set ahead."""
    for table in ("payment_attempt", "pingback", "movement", "card_change", "dispute_reading"):
        await database.execute(f"update {table} set leased_until = null where leased_until is not null")
    # The web service is alive: it renews the leases of its own calls before they are that short.
    await database.execute(
        "update api_call set leased_until = now() where leased_until < now() + $1::interval", LEASE - 1.2 * RENEWAL
    )
