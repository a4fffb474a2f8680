"""Acquirers: which are configured, for what, and how their recent answers went; and the accounts
that were added beside that of the settings. No secret is shown.
"""

from __future__ import annotations

from datetime import timedelta

from babel.numbers import format_decimal, format_percent
from starlette.responses import Response

from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.domain.accounts.second_factor import ask_again
from paydesk.domain.acquirers.accounts import KINDS, AcquirerAccount, list_accounts, not_here
from paydesk.domain.acquirers.health import list_out_of_turn
from paydesk.domain.acquirers.routing import list_rules
from paydesk.domain.operations.acquirer_accounts import (
    NewAccount,
    add_account,
    set_currencies,
    set_enabled,
    set_key,
    set_webhook_secrets,
)
from paydesk.domain.operations.acquirer_rules import in_words
from paydesk.domain.operations.machinery import acquirer_health
from paydesk.web.console.guards import Access, Section, field_errors
from paydesk.web.console.problems import error_words
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE

section = Section(FACE)
_ACQUIRERS = "/operator/acquirers"
_NEW = f"{_ACQUIRERS}/new"
_ONE = f"{_ACQUIRERS}/{{account_id}}"
_FIELDS = ("name", "kind", "key", "webhook_secrets", "address", "currencies", "for_merchant", "page_domain", "code")
PERIODS = {"hour": timedelta(hours=1), "day": timedelta(hours=24)}
"""Over what the figures are, as the address has it."""


@section.page(_ACQUIRERS, needs=Access.operator)
async def show_acquirers(visit: Visit) -> Response:
    """Each acquirer with what became of its attempts of the last hour, or day."""
    asked = "day" if visit.form.text("period", 10) == "day" else "hour"
    desk, locale = visit.services.desk, visit.texts.locale
    found = await acquirer_health(visit.database, since=visit.now - PERIODS[asked])
    accounts = await list_accounts(visit.database)
    return visit.page(
        "acquirers.html",
        accounts=accounts,
        rules=[(one, in_words(one)) for one in await list_rules(visit.database)],
        names=sorted({*desk.acquirers, *found} - await not_here(visit.database)),
        configured=desk.acquirers,
        test_ones=[desk.test_acquirer, *(one.name for one in accounts if one.enabled and not one.live)],
        live_ones=[desk.live_acquirer, *(one.name for one in accounts if one.enabled and one.live)],
        live_one=desk.live_acquirer,
        health=found,
        out={one.account: one for one in await list_out_of_turn(visit.database)},
        views=[
            (_ACQUIRERS, visit.texts.get("Last hour")),
            (f"{_ACQUIRERS}?period=day", visit.texts.get("Last 24 hours")),
        ],
        current=_ACQUIRERS if asked == "hour" else f"{_ACQUIRERS}?period=day",
        count=lambda number: format_decimal(number, locale=locale),
        share=lambda part, whole: format_percent(part / whole, "#,##0.0 %", locale=locale) if whole else "–",
    )


@section.page(_NEW, needs=Access.operator, recent=True)
async def show_new(visit: Visit) -> Response:
    """The form for another account; the password is asked for again before."""
    return _form(visit, {})


@section.action(_NEW, needs=Access.operator, recent=True)
async def add(visit: Visit) -> Response:
    """Add an account, once the second factor is proved again."""
    form = visit.form
    typed = NewAccount(
        form.text("name", 40).strip(),
        form.text("kind", 20),
        form.text("key", 400),
        form.text("address", 300),
        form.text("currencies", 2000),
        form.text("for_merchant", 20),
        form.has("hosts_pages"),
        form.text("page_domain", 200).strip(),
        form.text("webhook_secrets", 1000),
    )
    try:
        visit.form.require_only(*_FIELDS, boxes=("hosts_pages",))
        await ask_again(visit.gate, visit.session, form.text("code", 40), now=visit.now)
        await add_account(visit.services.desk, visit.session.operator, typed, now=visit.now)
    except (Malformed, Conflict, NotFound) as error:
        errors = (
            field_errors(visit, error, *_FIELDS, "hosts_pages")
            if isinstance(error, Malformed)
            else {"": error_words(visit.texts, error)}
        )
        return _form(visit, errors, typed, error.status)
    return visit.go(_ACQUIRERS, visit.texts.get("Added. It takes payments within a minute."))


def _form(visit: Visit, errors: dict[str, str], typed: NewAccount | None = None, status: int = 200) -> Response:
    """The form, with all that was typed but the key and the code."""
    return visit.page(
        "acquirer_new.html",
        status=status,
        typed=typed or NewAccount("", "stripe"),
        kinds=[(kind, kind) for kind in KINDS],
        errors=errors,
    )


@section.page(_ONE, needs=Access.operator, recent=True)
async def show_account(visit: Visit) -> Response:
    """One account that was added, with the forms to change it."""
    return await _account(visit, {})


@section.action(_ONE, needs=Access.operator, recent=True)
async def change(visit: Visit) -> Response:
    """Change one thing of an account, once the second factor is proved again."""
    desk, actor, name = visit.services.desk, visit.session.operator, (await _found(visit)).name
    try:
        visit.form.require_only("key", "webhook_secrets", "currencies", "code", boxes=("enabled",))
        await ask_again(visit.gate, visit.session, visit.form.text("code", 40), now=visit.now)
        if visit.form.text("key", 400).strip():
            await set_key(desk, actor, name, visit.form.text("key", 400), now=visit.now)
        if visit.form.text("webhook_secrets", 1000).strip():
            await set_webhook_secrets(desk, actor, name, visit.form.text("webhook_secrets", 1000), now=visit.now)
        await set_currencies(desk, actor, name, visit.form.text("currencies", 2000), now=visit.now)
        await set_enabled(desk, actor, name, enabled=visit.form.has("enabled"), now=visit.now)
    except (Malformed, Conflict) as error:
        errors = (
            field_errors(visit, error, *_FIELDS, "enabled")
            if isinstance(error, Malformed)
            else {"": error_words(visit.texts, error)}
        )
        return await _account(visit, errors, error.status)
    return visit.go(_ACQUIRERS, visit.texts.get("Saved."))


async def _account(visit: Visit, errors: dict[str, str], status: int = 200) -> Response:
    return visit.page("acquirer_account.html", status=status, account=await _found(visit), errors=errors)


async def _found(visit: Visit) -> AcquirerAccount:
    """The account that the address names. Raises: NotFound."""
    account_id = visit.number("account_id")
    for one in await list_accounts(visit.database):
        if one.id == account_id:
            return one
    raise NotFound(f"there is no account {account_id}")
