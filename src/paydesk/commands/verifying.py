"""`paydesk acquirer verify`: makes sure that an acquirer does what Paydesk asks of it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Final

import typer

from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.adapters.acquirers.verifying import PointState, Trial
from paydesk.adapters.acquirers.verifying import verify as try_all
from paydesk.commands.connecting import command, deployment
from paydesk.commands.printing import AsJson, counted, note, show_json, show_table, shown
from paydesk.core.errors import NotFound, SetupError
from paydesk.database.cluster import Layout
from paydesk.domain.acquirers.opening import AccountToOpen, what_opens
from paydesk.equipment import account_opened, acquirer_named, test_acquirer
from paydesk.settings import PREFIX, Settings, load_settings

EXAMPLE = "Example: PAYDESK_STRIPE_SECRET_KEY=sk_test_… paydesk acquirer verify stripe --wait 10"
_SIMULATOR: Final = "simulator"
_SANDBOX_KEYS: Final = {"stripe": ("stripe_secret_key", ("sk_test_", "rk_test_")), "mollie": ("mollie_key", ("test_",))}
"""The setting with an acquirer's key, and how a sandbox's begins."""


@command
async def verify(
    name: Annotated[
        str, typer.Argument(help="The acquirer: stripe, mollie or simulator; or an account that was added.")
    ],
    wait: Annotated[
        int, typer.Option(min=0, max=60, metavar="MINUTES", help="How long to wait for a person to pay on each page.")
    ] = 0,
    currency: Annotated[str, typer.Option(help="The currency of the small amounts.")] = "EUR",
    as_json: AsJson = False,
) -> None:
    """Try the contract at an acquirer's sandbox with small amounts, and clean up;
    exit status 1 if a point is not kept.

    Needs no database but for an account that was added. A live key is refused, and no address is
    named for notifications. Without --wait what needs a person at a browser is skipped.
    """
    settings = load_settings(as_running=True)
    acquirer = await _sandbox(settings, name)
    back, patience = f"{settings.address}/", timedelta(minutes=wait)
    try:
        trial = Trial(acquirer, currency=currency.upper(), return_url=back, wait=patience, ask=_ask)
        points = await try_all(trial)
    finally:
        await acquirer.close()
    failed = sum(one.state is PointState.FAILED for one in points)
    if as_json:
        show_json({"acquirer": name, "ok": not failed, "points": [asdict(one) for one in points]})
    else:
        rows = [(one.tried, one.expected, one.seen, one.state) for one in points]
        show_table(("tried", "expected", "seen", ""), rows)
        skipped = sum(one.state is PointState.SKIPPED for one in points)
        typer.echo(f"{counted(len(points), 'point')}: {failed} failed, {skipped} skipped")
    if failed:
        raise typer.Exit(1)


def _ask(what: str, url: str) -> None:
    """Tell a person at a browser what to do."""
    note(f"open {shown(url)} and {what}, with a test card such as 4242 4242 4242 4242")
    sys.stderr.flush()


async def _sandbox(settings: Settings, name: str) -> Acquirer:
    """The acquirer of the settings, or of an account that was added, at which no real money is
    moved. Raises: NotFound, SetupError.
    """
    if name == _SIMULATOR:
        return test_acquirer(settings)
    if name in _SANDBOX_KEYS:
        setting, begins = _SANDBOX_KEYS[name]
        _require_sandbox(f"{PREFIX}{setting.upper()}", getattr(settings, setting).get_secret_value(), begins)
        return acquirer_named(settings, name)
    added = await _added(settings, name)
    if added is None:
        named = ", ".join((*_SANDBOX_KEYS, _SIMULATOR))
        raise NotFound(f'there is no acquirer "{name[:40]}", only {named}, and the accounts that were added')
    if added.kind in _SANDBOX_KEYS:
        _require_sandbox(f"the key of {name}", added.key, _SANDBOX_KEYS[added.kind][1])
    acquirer = account_opened(settings, added)
    if acquirer is None:
        raise NotFound(f"{name} is of a kind that is not known here: {added.kind}")
    return acquirer


async def _added(settings: Settings, name: str) -> AccountToOpen | None:
    """What an account that was added is opened with; None where there is no database yet."""
    if not settings.database_url and not Layout(settings.data_dir).cluster.exists():
        return None
    async with deployment() as here:
        return await what_opens(here.database, here.vault, name)


def _require_sandbox(what: str, key: str, begins: tuple[str, ...]) -> None:
    """Make sure that no real money is moved. Raises: SetupError."""
    if not key.startswith(begins):
        why = "is a live key or none of a sandbox" if key else "is not set"
        raise SetupError(
            f"{what} {why}: this tries payments, and takes a sandbox's key alone "
            f"({' or '.join(f'{one}…' for one in begins)})"
        )
