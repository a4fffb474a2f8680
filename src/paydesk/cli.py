"""The command `paydesk`: puts the commands together."""

from __future__ import annotations

import typer

from paydesk import __version__
from paydesk.commands import postgres, running, serving, settings_table, working

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
    """Settings come from the environment (PAYDESK_…) and from settings.env in the data directory."""
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


def main() -> None:
    """Run the command line."""
    app()
