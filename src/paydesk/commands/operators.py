"""`paydesk operator`: the people who run the deployment.
They log in where merchants do, with a second factor.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from paydesk.commands.connecting import Deployment, command, deployment
from paydesk.commands.printing import AsJson, note, show_facts, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.links import AccountLink
from paydesk.domain.accounts.operators import create_operator, list_operators, remove_operator, reset_second_factor
from paydesk.equipment import gate_of

app = typer.Typer(help="Make, list and remove the people who run this deployment.", no_args_is_help=True)

Email = Annotated[str, typer.Option(help="The address that they log in with.")]


@app.command(epilog="Example: paydesk operator create --email ops@example.com")
@command
async def create(
    email: Email,
    name: Annotated[str, typer.Option(help="Shown in the console and the audit log; from the address if empty.")] = "",
    with_password: Annotated[
        bool, typer.Option("--password", help="Ask for a password, or read it from stdin, instead of making a link.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make an operator and print a link, valid once and for a day, to choose a password;
    or take one right away.

    Somebody who has an account keeps its password. The next log-in has them set up a second factor.
    """
    password = _password() if with_password else None
    look = "look before you make it again: paydesk operator list; who is there has a link mailed on the page to log in"
    async with deployment(again=look) as here:
        made = await create_operator(_gate(here), email=email, name=name, password=password, now=utc_now())
        address = here.settings.address
    link = AccountLink.password.at(address, made.token) if made.token else None
    if as_json:
        show_json({"id": made.person_id, "email": made.email, "link": link, "log_in": f"{address}/account"})
        return
    show_facts([("id", made.person_id), ("email", made.email), ("link" if link else "log in at", link or address)])
    if link:
        note("the link works once, for a day; whoever holds it becomes this operator")


@app.command("list", epilog="Example: paydesk operator list")
@command
async def list_(as_json: AsJson = False) -> None:
    """List all operators, oldest first."""
    async with deployment() as here:
        operators = await list_operators(_gate(here))
    rows = [(one.id, one.email, one.name, one.second_factor, one.created_at) for one in operators]
    names = ("id", "email", "name", "second_factor", "created_at")
    if as_json:
        show_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        show_table(("id", "email", "name", "second factor", "created"), rows)


@app.command(epilog="Example: paydesk operator remove --email ops@example.com")
@command
async def remove(email: Email) -> None:
    """Make an operator an ordinary person, and end all their sessions at once."""
    async with deployment() as here:
        await remove_operator(_gate(here), email=email, now=utc_now())
    note("is no operator any more")


@app.command("reset-second-factor", epilog="Example: paydesk operator reset-second-factor --email ops@example.com")
@command
async def reset(email: Email) -> None:
    """Take the second factor from somebody who lost phone and recovery codes:
    an operator, or anybody who logs in.

    Make sure first, by another way than mail, that it is them who ask. All their sessions end, and
    a mail tells them.
    """
    careful = "run it again, unless they have set up another second factor by then: it would be taken, too"
    async with deployment(again=careful) as here:
        operator = await reset_second_factor(_gate(here), email=email, now=utc_now())
    note("has no second factor any more, and no session; a mail says so")
    note("the next log-in has them set up another" if operator else "they can set up another under Security")


def _gate(here: Deployment) -> Gate:
    return gate_of(here.settings, here.database, here.vault, here.entering)


def _password() -> str:
    """The password, typed twice unseen, or the first line of stdin.

    Raises: Malformed if there is none.
    """
    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise Malformed("--password needs a password on stdin")
    return password
