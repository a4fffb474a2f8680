"""The background work: pingbacks, open outcomes, and housekeeping.
Any number of workers may run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from email.utils import parseaddr
from functools import partial

import structlog

from paydesk.adapters.mail import FolderMailbox, Mailbox, Mailer, addresses_of, parse_smtp_url
from paydesk.adapters.outbound import refusal
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.partitions import keep_partitions
from paydesk.database.pool import Database
from paydesk.database.table_statistics import TableStatistics
from paydesk.domain.accounts.housekeeping import forget_past_entries
from paydesk.domain.alarms.raising import watch_alarms
from paydesk.domain.billing.card_lookups import run_card_lookups
from paydesk.domain.billing.charging import run_billing
from paydesk.domain.billing.pacing import Pace
from paydesk.domain.chargebacks.evidence_files import erase_past_files
from paydesk.domain.chargebacks.fraud_warnings import run_fraud_warnings
from paydesk.domain.chargebacks.reading_acquirers import run_disputes
from paydesk.domain.deliveries.deadlines import run_deadlines
from paydesk.domain.ledger.closing import run_closing
from paydesk.domain.ledger.reserves import fold_reserves
from paydesk.domain.ledger.settling import run_settling
from paydesk.domain.ledger.summing_sales import run_summing
from paydesk.domain.mail.sending import Caps, MailSender
from paydesk.domain.mail.telling import run_telling
from paydesk.domain.merchants.idempotent_calls import KEPT, forget_calls
from paydesk.domain.merchants.refused_forms import forget_form_counts
from paydesk.domain.operations.clocks import ClockWatch
from paydesk.domain.operations.copying import is_a_copy
from paydesk.domain.operations.half_way import MoveWatch
from paydesk.domain.operations.history import History
from paydesk.domain.operations.holding import EVERY, beat, tend_hold, watch_history
from paydesk.domain.operations.machinery import run_pulse, watch_queues
from paydesk.domain.operations.memory_file import memory_file
from paydesk.domain.operations.reconciling import run_reconciliation
from paydesk.domain.operations.second_server import StandbyWatch
from paydesk.domain.payments.card_guard import forget_tries
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.failed_refunds import run_failed_refunds
from paydesk.domain.payments.janitor import run_janitor, watch_open_outcomes
from paydesk.domain.payments.letting_go import ask_unneeded
from paydesk.domain.pingbacks.resending_by_hand import send_all_waiting
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.pingbacks.waking import Listening, heard_by
from paydesk.domain.proceeds.reading import run_proceeds
from paydesk.domain.sealing.hiding_links import hide_left_links
from paydesk.domain.shoppers.instruments import remove_unneeded
from paydesk.domain.shoppers.sessions import forget_past
from paydesk.domain.subscriptions.folding import fold_movements
from paydesk.domain.subscriptions.moving import run_moves
from paydesk.equipment import (
    accounts_open,
    holds_without_standby,
    mailer_of,
    needs_standby,
    outbound_client,
    sender_settings,
)
from paydesk.loops.repeating import due_work_held, repeat
from paydesk.settings import PREFIX, Settings
from paydesk.web.cells.asking import Asking
from paydesk.web.cells.calling import other_cells
from paydesk.web.cells.disputes import disputes_elsewhere
from paydesk.web.cells.refunds import refunds_elsewhere
from paydesk.web.checkout.page_watching import run_page_watch
from paydesk.web.mails.writing import Addresses, write

log = structlog.get_logger()

HOUSEKEEPING = timedelta(minutes=1)
COUNTING = timedelta(seconds=15)
"""How often what is due is looked at; where it is much, it is counted less often."""
FORM_COUNTS_KEPT = timedelta(minutes=5)


async def work(
    settings: Settings,
    database: Database,
    vault: Vault,
    desk: Desk,
    stop: asyncio.Event,
    *,
    history: History,
    mailbox: Mailbox | FolderMailbox | None = None,
    words: Database | None = None,
) -> None:
    """Do all background work until told to stop; what is in flight then is finished first.

    `history` is what this process remembers of the database, and opens the desk's gate. `mailbox`
    takes the mails where there is no mail server. `words` is a pool of one connection, over which
    other processes say what is due; without it they wait until it is found.

    Raises: SetupError if the mail server's settings are wrong.
    """
    mailer = await allowed_mailer(settings, database) or mailbox
    outbound = await outbound_client(settings, database)
    sender = PingbackSender(database, vault, outbound, sender_settings(settings))
    listening = Listening(words, sender.wake)
    clock = ClockWatch(database, "work")
    try:
        with due_work_held(lambda: clock.holds_due_work), heard_by(sender.wake):
            async with accounts_open(desk), other_cells() as others, asyncio.TaskGroup() as tasks:
                tasks.create_task(clock.run(stop), name="clock")
                tasks.create_task(standby_watch(settings, desk).run(stop), name="standbys")
                file, often = memory_file(settings.data_dir), timedelta(seconds=EVERY * 0.9)
                tasks.create_task(watch_history(desk, history, file, stop), name="history")
                tasks.create_task(beat(database, history, stop, after=often), name="beat")
                tasks.create_task(tend_hold(desk, stop), name="hold")
                tasks.create_task(sender.run(stop, hears=lambda: listening.hears), name="pingbacks")
                tasks.create_task(listening.run(stop), name="words")
                tasks.create_task(run_janitor(desk, stop), name="janitor")
                tasks.create_task(run_card_lookups(desk, stop), name="card changes")
                tasks.create_task(run_billing(desk, stop, billing_pace(settings)), name="billing")
                asking = Asking(others, vault)
                disputes = run_disputes(desk, stop, disputes_elsewhere(asking, database))
                tasks.create_task(disputes, name="disputes")
                tasks.create_task(run_fraud_warnings(desk, stop), name="fraud warnings")
                failed_refunds = run_failed_refunds(desk, stop, refunds_elsewhere(asking, database))
                tasks.create_task(failed_refunds, name="failed refunds")
                tasks.create_task(run_reconciliation(desk, stop), name="reconciliation")
                tasks.create_task(run_proceeds(desk, stop, timedelta(days=settings.payout_days)), name="proceeds")
                tasks.create_task(run_deadlines(desk, stop), name="deadlines")
                tasks.create_task(run_settling(database, stop), name="settling")
                tasks.create_task(run_closing(database, stop), name="closing")
                tasks.create_task(run_summing(database, stop), name="summing of sales")
                tasks.create_task(run_moves(database, stop), name="moves of subscriptions")
                if mailer is None:
                    log.warning(f"mails wait: {PREFIX}SMTP_URL is not set, or this is a copy that may not reach it")
                else:
                    mails = mail_sender(settings, database, vault, mailer)
                    tasks.create_task(mails.run(stop), name="mails")
                    tasks.create_task(run_telling(database, stop, keep_test=mailer is mailbox), name="telling")
                if settings.page_check_hours:
                    every = timedelta(hours=settings.page_check_hours)
                    watching = run_page_watch(settings.address, every, database, stop)
                    tasks.create_task(watching, name="payment page")
                tasks.create_task(TableStatistics(database).run(stop), name="table statistics")
                tasks.create_task(run_pulse(database, stop), name="pulse")
                tasks.create_task(run_housekeeping(settings, database, vault, stop), name="housekeeping")
    finally:
        await outbound.close()


def standby_watch(settings: Settings, desk: Desk) -> StandbyWatch:
    """Looks after the standby, and tells of a lost one if live payments are taken only
    because there is one.
    """
    gate = desk.gate if holds_without_standby(settings) else None
    return StandbyWatch(desk.database, gate=gate, tells=needs_standby(settings))


async def allowed_mailer(settings: Settings, database: Database) -> Mailer | None:
    """What hands mails to the mail server; None without one, or in a copy that may not reach it.

    Raises: SetupError, naming the setting that is wrong.
    """
    mailer = mailer_of(settings)
    if mailer is None or not await is_a_copy(database):
        return mailer
    reached = await addresses_of(parse_smtp_url(settings.smtp_url.get_secret_value()))
    refused = [refusal(address, settings.copy_networks(), public=False) for address in reached]
    return mailer if refused and not any(refused) else None


def mail_sender(settings: Settings, database: Database, vault: Vault, mailer: Mailer) -> MailSender:
    """What sends mails, with links to the public addresses;
    those that leave this machine are capped.
    """
    operator = parseaddr(settings.mail_from)[0] or "Paydesk"
    addresses = Addresses(settings.address, settings.sandbox_address, operator)
    caps = Caps(settings.mails_per_address, settings.mails_per_merchant, settings.mails_per_person)
    return MailSender(
        database,
        vault,
        mailer,
        partial(write, addresses=addresses),
        in_flight=settings.mails_in_flight,
        caps=caps if settings.smtp_url.get_secret_value() else Caps(),
    )


def billing_pace(settings: Settings) -> Pace:
    """How renewals are charged."""
    return Pace(batch=settings.billing_batch, in_flight=settings.billing_in_flight)


async def run_housekeeping(settings: Settings, database: Database, vault: Vault, stop: asyncio.Event) -> None:
    """Make and drop the logs' partitions, forget old counters and answers, send what waited,
    measure what is open.

    Each is a loop of its own, so that one that fails does not keep the others from being done. What
    is measured is measured by a wrong clock too; nothing is forgotten by one.
    """
    chores: dict[str, Callable[[], Awaitable[object]]] = {
        "partitions of the logs": lambda: keep_partitions(database, now=utc_now(), months=settings.retention_months),
        "forgetting of form counts": lambda: forget_form_counts(database, before=utc_now() - FORM_COUNTS_KEPT),
        "forgetting of tries with cards": lambda: forget_tries(database, now=utc_now()),
        "forgetting of calls": lambda: forget_calls(database, before=utc_now() - KEPT),
        "forgetting of log-in attempts": lambda: forget_past_entries(database, now=utc_now()),
        "forgetting of shoppers' codes": lambda: forget_past(database, now=utc_now()),
        "forgetting of saved cards": lambda: remove_unneeded(database, now=utc_now()),
        "look for cards to let go of": lambda: ask_unneeded(database, now=utc_now()),
        "erasing of files of past disputes": lambda: erase_past_files(database, now=utc_now()),
        "hiding of older links": lambda: hide_left_links(database, vault),
        "folding of recurring revenue": lambda: fold_movements(database),
        "folding of reserves": lambda: fold_reserves(database, now=utc_now()),
        "sending of what waited": lambda: send_all_waiting(database, now=utc_now()),
    }
    measures: dict[str, Callable[[], Awaitable[object]]] = {
        "queues": lambda: watch_queues(database, now=utc_now()),
        "open outcomes": lambda: watch_open_outcomes(database, now=utc_now()),
        "alarms": lambda: watch_alarms(database, now=utc_now()),
        "moves between cells": MoveWatch(database).look,
    }

    async def do(chore: Callable[[], Awaitable[object]]) -> None:
        await chore()

    async with asyncio.TaskGroup() as tasks:
        for name, chore in (chores | measures).items():
            rest = COUNTING if name == "queues" else HOUSEKEEPING
            call = partial(do, chore)
            tasks.create_task(repeat(name, call, stop, rest=rest.total_seconds(), due=name in chores), name=name)
