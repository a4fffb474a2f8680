"""What every process works with, made by the settings: vault, acquirers, the desk,
and the watch over the database's history.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path

from paydesk.adapters.acquirers.gated import GatedAcquirer
from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.adapters.acquirers.simulator import Bank, Record, RemoteSimulator, SimulatedAcquirer, parse_terms
from paydesk.adapters.ip_countries import IpCountries
from paydesk.adapters.mail import FolderMailbox, Mailer, SmtpMailer, parse_smtp_url
from paydesk.adapters.outbound import Bounds, OutboundClient
from paydesk.adapters.vault import Vault
from paydesk.core.errors import SetupError
from paydesk.database.pool import AWAY, Database, connected
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.passwords import BreachedPasswords, Passwords
from paydesk.domain.acquirers.accounts import print_of
from paydesk.domain.acquirers.health import Health
from paydesk.domain.acquirers.measuring import MeasuredAcquirer
from paydesk.domain.acquirers.opening import AccountToOpen, Open, OpenAcquirers
from paydesk.domain.cells.entering import ALONE, PATIENCE, Entering
from paydesk.domain.operations.copying import is_a_copy
from paydesk.domain.operations.history import History
from paydesk.domain.operations.holding import QUIET, beat, watch_history
from paydesk.domain.operations.memory_file import memory_file, recall
from paydesk.domain.operations.second_server import standby_watched
from paydesk.domain.payments.card_guard import Limits, in_test_mode
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hold_gate import MoneyGate
from paydesk.domain.payments.idempotency_keys import pads_of
from paydesk.domain.pingbacks.sending import SenderSettings
from paydesk.required_keys import require_live_key
from paydesk.settings import PREFIX, Settings


def vault_of(settings: Settings) -> Vault:
    """The vault under the deployment's keys. Raises: SetupError."""
    return Vault.from_settings(settings.vault_keys.get_secret_value(), settings.secret_key.get_secret_value())


def gate_of(settings: Settings, database: Database, vault: Vault, entering: Entering = ALONE) -> Gate:
    """What letting people in needs. Raises: SetupError for an unreadable list of passwords."""
    leaked = settings.breached_passwords
    passwords = Passwords(breached=BreachedPasswords(Path(leaked)) if leaked else None)
    return Gate(database, vault, passwords, entering)


@asynccontextmanager
async def entering_of(settings: Settings) -> AsyncIterator[Entering]:
    """How what is new is entered in the directory of cells, for the length of a block; home is
    connected to when it is first needed.
    """
    if not settings.home_database_url:
        yield Entering(asks=settings.cell is not None)
        return
    async with connected(settings.home_database_url, least=0, most=2, name="home", patience=PATIENCE) as home:
        yield Entering(asks=True, home=home)


def ip_countries(settings: Settings) -> IpCountries | None:
    """What knows the countries of addresses, if there is a file of them. Raises: SetupError."""
    return IpCountries(Path(settings.ip_countries)) if settings.ip_countries else None


def test_acquirer(settings: Settings) -> Acquirer:
    """The simulated bank, inside this process or at its own address."""
    if settings.simulator_url:
        return RemoteSimulator(settings.simulator_url)
    record = settings.simulator_record
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        bank = Bank(Record(record))
        every = timedelta(minutes=settings.simulator_payout_minutes)
        bank.balance.agree(parse_terms(settings.simulator_fees), every)
    except ValueError as error:
        raise SetupError(f"PAYDESK_SIMULATOR_FEES {error}") from error
    except OSError as error:
        raise SetupError(
            f"cannot write {record}: {error.strerror}; set PAYDESK_DATA_DIR to a directory of yours"
        ) from error
    return SimulatedAcquirer(bank, base_url=settings.address, latency=settings.simulator_latency)


def live_acquirer(settings: Settings) -> Acquirer | None:
    """Who takes live payments, if anybody; the caller closes it. Raises: SetupError."""
    if not settings.live_acquirer:
        return None
    require_live_key(settings)
    return acquirer_named(settings, settings.live_acquirer)


def acquirer_named(settings: Settings, name: str) -> Acquirer:
    """The acquirer of a name with its settings, whoever takes live payments;
    the caller closes it. Raises: SetupError.
    """
    # The libraries are large: only who uses one loads it.
    if name == "mollie":
        from paydesk.adapters.acquirers.mollie import MollieAcquirer

        return MollieAcquirer(settings.mollie_key.get_secret_value(), api_base=settings.mollie_api_base)
    from paydesk.adapters.acquirers.stripe import StripeAcquirer

    return StripeAcquirer(
        settings.stripe_secret_key.get_secret_value(),
        api_base=settings.stripe_api_base,
        hosts_pages=settings.stripe_checkout,
        checkout_domain=settings.stripe_checkout_domain,
        webhook_secrets=settings.webhook_secrets(),
    )


def account_opener(settings: Settings, held: Callable[[], str], health: Health) -> Open:
    """What opens accounts that were added; one for live payments only where the settings name a
    live acquirer, whose safeguards are its own, too.
    """

    def open_account(account: AccountToOpen) -> Acquirer | None:
        if account.kind != "simulator" and not settings.live_acquirer:
            return None
        opened = account_opened(settings, account)
        if opened is None:
            return None
        # What is held never reaches the acquirer, and says nothing of how it answers.
        return GatedAcquirer(MeasuredAcquirer(opened, health, name=account.name), held, name=account.name)

    return open_account


def account_opened(settings: Settings, account: AccountToOpen) -> Acquirer | None:
    """What asks an account that was added, and is let through by nothing yet; None if its kind is
    not known; the caller closes it.
    """
    if account.kind == "simulator":
        return RemoteSimulator(account.address)
    if account.kind == "mollie":
        from paydesk.adapters.acquirers.mollie import MollieAcquirer

        return MollieAcquirer(account.key, api_base=settings.mollie_api_base)
    if account.kind != "stripe":
        return None
    from paydesk.adapters.acquirers.stripe import StripeAcquirer

    return StripeAcquirer(
        account.key,
        api_base=settings.stripe_api_base,
        hosts_pages=account.hosts_pages,
        checkout_domain=account.page_domain,
        webhook_secrets=account.webhook_secrets,
    )


@asynccontextmanager
async def accounts_open(desk: Desk) -> AsyncIterator[None]:
    """Keep the accounts that were added open for a block, as they are changed meanwhile."""
    known = desk.acquirers
    if not isinstance(known, OpenAcquirers):
        yield
        return
    stop = asyncio.Event()
    with suppress(*AWAY):
        await known.look_once(desk.database)
    tasks = (
        asyncio.create_task(known.run(desk.database, stop), name="acquirer accounts"),
        asyncio.create_task(desk.health.run(desk.database, known, stop), name="acquirer health"),
    )
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)
        await known.close()


def card_limits(settings: Settings) -> Limits:
    """The operator's limits against card testing."""
    return Limits(
        attempts_per_checkout=settings.attempts_per_checkout,
        declines_per_hour=settings.declines_per_hour,
        tries_per_card=settings.tries_per_card,
        wrong_cvcs_per_card=settings.wrong_cvcs_per_card,
        checks_per_card=settings.checks_per_card,
        declines_before_challenge=settings.declines_before_challenge,
    )


def payment_desk(
    settings: Settings,
    database: Database,
    vault: Vault,
    acquirer: Acquirer,
    live: Acquirer | None = None,
    *,
    gate: MoneyGate | None = None,
) -> Desk:
    """What taking payments needs, by the settings;
    `acquirer` serves test payments and `live` live ones.

    What moves money passes the gate, here and once more at the acquirers; without one nothing is
    ever held.
    """
    limits, secret = card_limits(settings), settings.idempotency_secret.get_secret_value().strip()
    passed, health = gate or MoneyGate(), Health()
    banks = [MeasuredAcquirer(each, health) for each in (acquirer, live) if each is not None]
    usual = {each.name: GatedAcquirer(each, passed.held) for each in banks}
    return Desk(
        database,
        vault,
        OpenAcquirers(vault, usual, account_opener(settings, passed.held, health)),
        gate=passed,
        health=health,
        test_acquirer=acquirer.name,
        live_acquirer=live.name if live is not None else None,
        limits=limits,
        test_limits=in_test_mode(limits),
        pads=pads_of(secret.encode()) if secret else b"",
        usual_prints=_prints(settings, vault),
        adopts=settings.adopt_forgotten,
        gives_back_paid_twice=settings.give_back_paid_twice,
        slow_methods=settings.slow_methods,
        slow_renewals=settings.slow_renewals,
    )


def _prints(settings: Settings, vault: Vault) -> frozenset[bytes]:
    """By what it is seen that an account is that of the settings once more."""
    keys = (settings.stripe_secret_key, settings.mollie_key)
    named = (*(key.get_secret_value() for key in keys), settings.simulator_url)
    return frozenset(print_of(vault, one) for one in named if one)


def history_of(settings: Settings) -> History:
    """What a process of this deployment remembers of the database when it starts."""
    return History(recall(memory_file(settings.data_dir)))


@asynccontextmanager
async def history_watched(settings: Settings, desk: Desk, history: History) -> AsyncIterator[None]:
    """Watch for the length of a block whether the database still knows what it knew,
    and beat if no worker does.

    Where that is wanted, also whether a standby has what is committed.
    """
    stop = asyncio.Event()
    tasks = (
        asyncio.create_task(watch_history(desk, history, memory_file(settings.data_dir), stop), name="history"),
        asyncio.create_task(beat(desk.database, history, stop, after=QUIET), name="beat"),
    )
    try:
        async with standby_watched(desk.database, history.gate) if holds_without_standby(settings) else nullcontext():
            yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)


def holds_without_standby(settings: Settings) -> bool:
    """Whether nothing that moves money is begun while no synchronous standby is there."""
    return needs_standby(settings) and settings.without_standby == "hold"


def needs_standby(settings: Settings) -> bool:
    """Whether live payments are taken only because there is a synchronous standby."""
    return bool(settings.live_acquirer) and not settings.allow_async


async def outbound_client(
    settings: Settings, database: Database, *, timeout: float | None = None, max_answer: int = 4096
) -> OutboundClient:
    """What calls merchants' URLs; in a copy it reaches nothing but the networks that are named
    for that. Without a `timeout` of its own it waits as pingbacks do.
    """
    copy = await is_a_copy(database)
    return OutboundClient(
        allow=settings.copy_networks() if copy else settings.outbound_networks(),
        timeout=timeout or settings.pingback_timeout,
        max_answer=max_answer,
        public=not copy,
        keep=Bounds(settings.pingbacks_in_flight, settings.pingbacks_per_endpoint),
    )


def sender_settings(settings: Settings) -> SenderSettings:
    """How pingbacks are sent; a lease outlasts the slowest answer with time to record it."""
    return SenderSettings(
        header_prefix=settings.pingback_header_prefix,
        in_hand=settings.pingbacks_in_flight,
        per_endpoint=settings.pingbacks_per_endpoint,
        lease=2 * settings.pingback_timeout + 10,
    )


def mailer_of(settings: Settings) -> Mailer | None:
    """What hands mails to the mail server, or None if there is none.

    Raises: SetupError, naming the setting that is wrong.
    """
    url = settings.smtp_url.get_secret_value()
    if not url:
        return None
    try:
        server = parse_smtp_url(url)
    except ValueError as error:
        raise SetupError(f"{PREFIX}SMTP_URL: {error}") from None
    try:
        return SmtpMailer(server, mail_from=settings.mail_from)
    except ValueError as error:
        raise SetupError(f"{PREFIX}MAIL_FROM: {error}") from None


def mailbox_of(settings: Settings) -> FolderMailbox | None:
    """Where the worker leaves mails and the web process shows them;
    None where there is a mail server.
    """
    return None if mailer_of(settings) else FolderMailbox(settings.data_dir / "mailbox")
