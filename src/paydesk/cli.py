"""The command `paydesk`: puts the commands together."""

from __future__ import annotations

import typer

from paydesk import __version__
from paydesk.commands import running, serving, working

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


def main() -> None:
    """Run the command line."""
    app()
