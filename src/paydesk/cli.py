"""The command `paydesk`: puts the commands together."""

from __future__ import annotations

import typer

from paydesk import __version__
from paydesk.commands import (
    alarms,
    chargebacks,
    checking,
    clock,
    customers,
    fees,
    holding,
    ledger,
    mail,
    merchants,
    operators,
    pingbacks,
    postgres,
    profiles,
    reconciling,
    refunds,
    restoring,
    running,
    serving,
    settings_table,
    subscriptions,
    undoing,
    vault,
    working,
)
from paydesk.logs import log_to_stderr

app = typer.Typer(
    name="paydesk",
    help="Hosted checkout and subscriptions that anyone can run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def about(
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:
    """Settings come from the environment (PAYDESK_…) and from settings.env
    in the data directory.
    """
    if version:
        typer.echo(__version__)
        raise typer.Exit


app.command(epilog="Example: paydesk run")(running.run)
app.command(epilog="Example: paydesk serve --workers 4")(serving.serve)
app.command(epilog="Example: paydesk work")(working.work)
app.command(epilog="Example: PAYDESK_DATABASE_URL=postgresql://paydesk@db/paydesk paydesk migrate")(working.migrate)
app.command(
    epilog="Example: paydesk postgres pg_dump --format=custom --file=backup.dump",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)(postgres.postgres)
app.command(epilog="Example: paydesk settings")(settings_table.settings)
app.command(epilog=checking.EXAMPLE)(checking.check)
app.command(epilog=reconciling.EXAMPLE)(reconciling.reconcile)
app.command(epilog=undoing.EXAMPLE)(undoing.undo)
app.command(epilog=restoring.EXAMPLE)(restoring.restored)
app.add_typer(holding.app, name="hold")
app.command(epilog="Example: paydesk balance 1 --live")(ledger.balance)
app.command(epilog=refunds.EXAMPLE)(refunds.refund)
app.add_typer(merchants.app, name="merchant")
app.add_typer(fees.app, name="fees")
app.add_typer(profiles.app, name="profile")
app.add_typer(operators.app, name="operator")
app.add_typer(pingbacks.app, name="pingback")
app.add_typer(mail.app, name="mail")
app.add_typer(alarms.app, name="alarm")
app.add_typer(subscriptions.app, name="subscription")
app.add_typer(clock.app, name="clock")
app.add_typer(chargebacks.app, name="chargeback")
app.add_typer(ledger.ledger, name="ledger")
app.add_typer(ledger.payouts, name="payout")
app.add_typer(vault.app, name="vault")
app.add_typer(customers.app, name="customer")


def main() -> None:
    """Run the command line; stdout belongs to results, so that logs go to stderr from the start."""
    log_to_stderr()
    app()
