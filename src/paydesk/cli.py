"""The command `paydesk`: puts the commands together."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import typer

from paydesk import __version__
from paydesk.commands import loading
from paydesk.logs import log_to_stderr
from paydesk.standard_streams import give_up_stdout, is_unwritten, make_whole, to_mend

COMMANDS = {
    "run": ("running", "Example: paydesk run"),
    "serve": ("serving", "Example: paydesk serve --workers 4"),
    "work": ("working", "Example: paydesk work"),
    "migrate": (
        "working",
        "Examples: PAYDESK_DATABASE_URL=postgresql://paydesk@db/paydesk paydesk migrate; paydesk migrate --finish",
    ),
    "postgres": ("postgres", "Example: paydesk postgres pg_dump --format=custom --file=backup.dump"),
    "settings": ("settings_table", "Example: paydesk settings"),
    "check": ("checking", ""),
    "reconcile": ("reconciling", ""),
    "undo": ("undoing", ""),
    "restored": ("restoring", ""),
    "balance": ("ledger", "Example: paydesk balance 1 --live"),
    "refund": ("refunds", ""),
}
"""In which module the function of a command's name is, and its example; else the module has one."""

GROUPS = {
    "hold": ("holding", "app"),
    "merchant": ("merchants", "app"),
    "acquirer": ("acquirers", "app"),
    "proceeds": ("proceeds", "app"),
    "fees": ("fees", "app"),
    "profile": ("profiles", "app"),
    "operator": ("operators", "app"),
    "pingback": ("pingbacks", "app"),
    "mail": ("mail", "app"),
    "alarm": ("alarms", "app"),
    "subscription": ("subscriptions", "app"),
    "package": ("packages", "app"),
    "coupon": ("coupons", "app"),
    "clock": ("test_clock", "app"),
    "chargeback": ("chargebacks", "app"),
    "ledger": ("ledger", "ledger"),
    "payout": ("ledger", "payouts"),
    "vault": ("vault", "app"),
    "customer": ("customers", "app"),
    "cell": ("cells", "app"),
}
"""Where the commands of a noun are."""

ALL = (*COMMANDS, *GROUPS)
_FOR_ANOTHER_PROGRAM = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def command_line(names: Iterable[str] = ALL) -> typer.Typer:
    """The command line with the commands of these names: whoever asks for one need not wait until
    all others are loaded, too.
    """
    app = typer.Typer(
        name="paydesk",
        epilog="Example: paydesk run",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback(invoke_without_command=True)(about)
    for name in names:
        if name in COMMANDS:
            _add_command(app, name)
        else:
            module, within = GROUPS[name]
            app.add_typer(getattr(_loaded(module), within), name=name)
    return app


def about(
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:
    """Hosted checkout and subscriptions that anyone can run.

    Settings come from the environment (PAYDESK_…) and from settings.env in the data directory;
    `paydesk settings` lists them.
    """
    if version:
        typer.echo(__version__)
        raise typer.Exit


def _add_command(app: typer.Typer, name: str) -> None:
    module, example = _loaded(COMMANDS[name][0]), COMMANDS[name][1]
    passed_on = _FOR_ANOTHER_PROGRAM if name == "postgres" else None
    app.command(name, epilog=example or module.EXAMPLE, context_settings=passed_on)(getattr(module, name))


def _loaded(module: str) -> Any:
    return import_module(f"paydesk.commands.{module}")


def main() -> None:
    """Run the command line; stdout belongs to results, so that logs go to stderr from the start."""
    make_whole()
    log_to_stderr()
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    if first == "--version":
        names: Iterable[str] = ()
    else:
        names = [first] if first in ALL else ALL
    try:
        with loading.for_good():
            app = command_line(names)
        app()
    except KeyboardInterrupt:
        # As a command ends that is broken off once it runs.
        sys.exit(130)
    except OSError as error:
        if not is_unwritten(error):
            raise
        give_up_stdout()
        sys.stderr.write(f"paydesk: can't write: {error}; {to_mend(error)}\n")
        sys.exit(1)
