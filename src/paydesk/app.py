"""The web application: wires settings, database, vault and acquirers to the doors."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.adapters.acquirers.simulator import Notifier, SimulatedAcquirer, challenge_app
from paydesk.adapters.outbound import OutboundClient
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.migrating import require_current_schema
from paydesk.database.pool import AWAY, Database, connected
from paydesk.database.readiness import commits
from paydesk.database.waiting import LONGEST_STATEMENT
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.cells.finding import finder_at_work
from paydesk.domain.coupons.applying import apply_signed
from paydesk.domain.operations.clocks import ClockWatch
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.fetching_pictures import LARGEST_ANSWER
from paydesk.domain.payments.fetching_pictures import TIMEOUT as PICTURE_TIMEOUT
from paydesk.domain.payments.hold_gate import MoneyGate
from paydesk.domain.payments.receiving import Reception
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.pingbacks.waking import passed_on
from paydesk.equipment import (
    accounts_open,
    entering_of,
    gate_of,
    history_of,
    history_watched,
    ip_countries,
    live_acquirer,
    outbound_client,
    payment_desk,
    sender_settings,
    test_acquirer,
    vault_of,
)
from paydesk.failures import exception_handlers, known_error
from paydesk.logs import set_up_logs
from paydesk.required_keys import require_keys
from paydesk.settings import Settings, load_settings
from paydesk.web.account import routes as account
from paydesk.web.api import routes as api_routes
from paydesk.web.api.services import ApiServices
from paydesk.web.assets import static_app
from paydesk.web.cells import answering
from paydesk.web.cells.arriving import Arrivals
from paydesk.web.cells.asking import Asking
from paydesk.web.cells.calling import other_cells
from paydesk.web.cells.passing_on import BetweenCells, PassingOn
from paydesk.web.cells.watching import watching
from paydesk.web.checkout import routes, saved_cards
from paydesk.web.checkout.services import CheckoutServices
from paydesk.web.console.return_paths import HOME
from paydesk.web.console.services import ConsoleServices
from paydesk.web.console.shell import require_front_end
from paydesk.web.guide import routes as guide
from paydesk.web.hosts import KnownHosts
from paydesk.web.middleware import Observed, SandboxBase
from paydesk.web.notifications import notification_routes
from paydesk.web.operator import routes as operator
from paydesk.web.portal import paying as portal_paying
from paydesk.web.portal import routes as portal
from paydesk.web.portal import saved_cards as portal_cards
from paydesk.web.portal.services import PortalServices
from paydesk.web.violations import report_routes

log = structlog.get_logger()


def create() -> FastAPI:
    """The application by the settings of the environment, as uvicorn's workers make it."""
    settings = load_settings()
    set_up_logs(settings)
    return create_app(settings)


def create_app(settings: Settings) -> FastAPI:
    """The application; it opens its connections when it starts and closes them when it stops.

    Raises: SetupError if keys or the front-end files are missing.
    """
    require_keys(settings)
    require_front_end()
    vault = vault_of(settings)
    # Within the process the bank is one object: the challenge pages and the acquirer share it.
    acquirer, notifier = test_acquirer(settings), Notifier()
    live = live_acquirer(settings)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[Mapping[str, object]]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(acquirer.close)
            stack.push_async_callback(notifier.close)
            if live is not None:
                stack.push_async_callback(live.close)
            url, most, history = settings.database_url, settings.database_connections, history_of(settings)
            met = partial(connected, url, least=0, meet=history.meet)
            pool = met(most=most, name="requests", patience=LONGEST_STATEMENT)
            database = await stack.enter_async_context(pool)
            # People at the account can't take the connections that customers pay over.
            console_database = await stack.enter_async_context(met(most=settings.console_connections, name="console"))
            # The command looked at the schema before; a worker that takes the place of another
            # while the database is away answers 503 until it is back, and must not end the whole
            # service by failing to start.
            with suppress(*AWAY):
                await require_current_schema(database)
            await stack.enter_async_context(passed_on(database))
            stack.enter_context(_ending_with_parent())
            log.info("ready to answer", pid=os.getpid())
            services = checkout_services(settings, database, vault, acquirer, live, gate=history.gate)
            entering = await stack.enter_async_context(entering_of(settings))
            gate = gate_of(settings, console_database, vault, entering)
            console_desk = payment_desk(settings, console_database, vault, acquirer, live, gate=history.gate)
            console_desk = replace(console_desk, acquirers=services.desk.acquirers)
            await stack.enter_async_context(accounts_open(services.desk))
            for desk in (services.desk, console_desk):
                stack.push_async_callback(desk.finish)
            await stack.enter_async_context(history_watched(settings, console_desk, history))
            finder = await stack.enter_async_context(finder_at_work(database, vault, settings.home_database_url))
            others = await stack.enter_async_context(other_cells())
            watch = await stack.enter_async_context(watching(Asking(others, vault)))
            yield {
                BetweenCells.key: BetweenCells(finder, others, watch, gate, settings.other_host_names()),
                CheckoutServices.door: services,
                PortalServices.door: portal_services(settings, services.desk),
                ApiServices.door: api_services(settings, services.desk),
                ConsoleServices.door: console_services(settings, console_desk, gate),
                "database": database,
            }

    app = FastAPI(
        title="Paydesk",
        openapi_url=None,
        # A redirect to the path without a slash would lose the sandbox's prefix: a test would
        # go live.
        redirect_slashes=False,
        lifespan=lifespan,
        middleware=[
            Middleware(Observed),
            Middleware(Arrivals, vault=vault, refusal=known_error, now=utc_now),
            Middleware(
                KnownHosts, addresses=(settings.address, settings.sandbox_address), others=settings.other_host_names()
            ),
            Middleware(SandboxBase, address=settings.address, sandbox_address=settings.sandbox_address),
            Middleware(
                PassingOn,
                vault=vault,
                trusted_proxies=settings.proxy_networks(),
                refusal=known_error,
                now=utc_now,
            ),
        ],
        exception_handlers=exception_handlers(),
    )
    app.router.routes.extend(
        [
            # First what customers pay by: no call of the API is asked before whether it is meant.
            *routes.routes,
            # Not include_router: it would work out every call's parameters anew for each
            # application.
            *api_routes.router.routes,
            *saved_cards.routes,
            *portal_cards.routes,
            *portal_paying.routes,
            *portal.routes,
            *account.routes,
            *operator.routes,
            *guide.routes,
            *answering.routes,
            *notification_routes(settings.proxy_networks()),
            *report_routes((settings.address, settings.sandbox_address), settings.proxy_networks()),
            Route("/", _start),
            Route("/healthz", _healthy),
            Route("/readyz", _ready),
            Mount("/static", static_app()),
        ]
    )
    if isinstance(acquirer, SimulatedAcquirer):
        app.mount("/simulator", challenge_app(acquirer.bank, notifier))
    return app


@contextmanager
def _ending_with_parent() -> Iterator[None]:
    """Stop when the process dies that started this worker, or the port would stay taken."""
    parent = multiprocessing.parent_process()
    if parent is None:
        yield
        return
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.remove_reader(parent.sentinel)
        log.warning("the service's main process is gone; stopping", pid=os.getpid())
        signal.raise_signal(signal.SIGTERM)

    loop.add_reader(parent.sentinel, end)
    try:
        yield
    finally:
        loop.remove_reader(parent.sentinel)


def _of_every_door(settings: Settings, desk: Desk) -> dict[str, Any]:
    """What each door's routes work with, whatever else they need."""
    return {
        "desk": desk,
        "trusted_proxies": settings.proxy_networks(),
        "address": settings.address,
        "sandbox_address": settings.sandbox_address,
        "now": utc_now,
    }


def checkout_services(
    settings: Settings, database: Database, vault: Vault, acquirer: Acquirer, live: Acquirer | None, *, gate: MoneyGate
) -> CheckoutServices:
    """What the checkout's routes work with."""
    desk = payment_desk(settings, database, vault, acquirer, live, gate=gate)
    return CheckoutServices(
        **_of_every_door(settings, desk),
        reception=Reception(
            database,
            vault,
            settings.forms_per_minute,
            desk.serving,
            apply_signed,
            partial(pictures_for_a_call, settings, desk),
        ),
    )


def portal_services(settings: Settings, desk: Desk) -> PortalServices:
    """What the customer's portal works with."""
    return PortalServices(**_of_every_door(settings, desk))


def console_services(settings: Settings, desk: Desk, gate: Gate) -> ConsoleServices:
    """What the routes of the account and of the operator's console work with."""
    return ConsoleServices(
        **_of_every_door(settings, desk),
        gate=gate,
        iban_wait=settings.iban_wait,
        payout_account=settings.payout_account,
        sender=partial(sender_for_a_call, settings, desk),
        outbound_allow=settings.outbound_networks(),
        countries=ip_countries(settings),
    )


def api_services(settings: Settings, desk: Desk) -> ApiServices:
    """What the API's routes work with."""
    return ApiServices(
        **_of_every_door(settings, desk),
        calls_per_minute=settings.calls_per_minute,
        sender=partial(sender_for_a_call, settings, desk),
        pictures=partial(pictures_for_a_call, settings, desk),
    )


@asynccontextmanager
async def pictures_for_a_call(settings: Settings, desk: Desk) -> AsyncIterator[OutboundClient]:
    """What fetches pictures for one call: more is read than of the answer to a pingback."""
    outbound = await outbound_client(settings, desk.database, timeout=PICTURE_TIMEOUT, max_answer=LARGEST_ANSWER)
    try:
        yield outbound
    finally:
        await outbound.close()


@asynccontextmanager
async def sender_for_a_call(settings: Settings, desk: Desk) -> AsyncIterator[PingbackSender]:
    """A sender of pingbacks for one call of the API or the account, beside those of the workers."""
    outbound = await outbound_client(settings, desk.database)
    try:
        yield PingbackSender(desk.database, desk.vault, outbound, sender_settings(settings))
    finally:
        await outbound.close()


async def _start(_request: Request) -> Response:
    """Who comes to the bare address is a merchant or an operator: customers come by their shop."""
    return RedirectResponse(HOME, 303, headers={"Cache-Control": "no-store"})


async def _healthy(_request: Request) -> Response:
    return PlainTextResponse("ok")


async def _ready(request: Request) -> Response:
    """Whether this process can serve: the database commits, and its clock is not alone off."""
    if not await commits(request.state.database):
        return PlainTextResponse("the database does not commit writes", status_code=503)
    clock: ClockWatch | None = getattr(request.state, "clock", None)
    if clock is not None and not clock.serves_customers:
        return PlainTextResponse("this machine's clock is off; set its time (NTP)", status_code=503)
    return PlainTextResponse("ok")
