"""`paydesk pingback`: what was told to merchants, what they answered, and telling them again."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

import msgspec
import typer

from paydesk.commands.connecting import AGAIN, command, deployment
from paydesk.commands.options import EitherSide, HowMany, side_word
from paydesk.commands.printing import AsJson, counted, note, progress, show_facts, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.business.pingback_acting import find_elsewhere, resend_if_failed, resend_logged
from paydesk.domain.merchants.merchant import find_merchant
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.domain.operations.pingbacks_for_operator import exhausted_pingbacks, newest_pingbacks, shop_of_pingback
from paydesk.domain.pingbacks.resending_by_hand import Pingback, PingbackAttempt, find_tried_pingback
from paydesk.domain.pingbacks.states import PingbackState

app = typer.Typer(help="See and resend the notifications to merchants' servers.", no_args_is_help=True)

PingbackId = Annotated[int, typer.Argument(metavar="ID", min=1, help="The pingback's id.")]


@app.command("list", epilog="Example: paydesk pingback list 1 --state exhausted --last 10")
@command
async def list_(
    merchant_id: Annotated[int | None, typer.Argument(metavar="[MERCHANT_ID]", min=1, help="All if left out.")] = None,
    state: Annotated[PingbackState | None, typer.Option(help="Only those in this state.")] = None,
    live: EitherSide = None,
    last: HowMany = 50,
    as_json: AsJson = False,
) -> None:
    """List the newest pingbacks, newest first."""
    async with deployment() as here:
        if merchant_id is not None:
            await find_merchant(here.database, merchant_id)
        found = await newest_pingbacks(here.database, merchant_id=merchant_id, live=live, state=state, most=last)
    if as_json:
        show_json([_listed(one.merchant_id, one) for one in found])
        return
    show_table(
        ("id", "merchant", "mode", "event", "payment", "state", "attempts", "due", "url"),
        [
            (
                one.id,
                one.merchant_id,
                side_word(one.live),
                one.event,
                one.payment_id,
                one.state,
                one.attempts,
                one.due_at if one.state is PingbackState.DUE else None,
                one.url,
            )
            for one in found
        ],
    )


@app.command(epilog="Example: paydesk pingback show 17")
@command
async def show(pingback_id: PingbackId, as_json: AsJson = False) -> None:
    """Show a pingback's payload, and every attempt with what was sent and what came back."""
    async with deployment() as here:
        shop = await shop_of_pingback(here.database, pingback_id)
        pingback, attempts = await find_tried_pingback(here.database, shop, pingback_id)
    listed = _listed(shop.merchant_id, pingback)
    if as_json:
        show_json(listed | {"sent": attempts})
        return
    show_facts((listed | {"payload": pingback.payload}).items())
    for attempt in attempts:
        _show_attempt(attempt)


@app.command(epilog="Examples: paydesk pingback resend 17; paydesk pingback resend --failed --merchant 1")
@command
async def resend(
    pingback_id: Annotated[int | None, typer.Argument(metavar="[ID]", min=1, help="The pingback's id.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="All of a merchant's that are exhausted.")] = False,
    merchant: Annotated[int | None, typer.Option(min=1, help="The merchant's id, with --failed.")] = None,
    url: Annotated[str, typer.Option(help="Where to send it instead, with an id.")] = "",
    as_json: AsJson = False,
) -> None:
    """Have pingbacks sent once more, at once."""
    if (pingback_id is None) != failed or failed != (merchant is not None) or (failed and url):
        raise Malformed("give either a pingback's id, or --failed and --merchant; see: paydesk pingback resend --help")
    sent_to: str | None = None
    look = f"look before you have it sent again: paydesk pingback show {pingback_id}"
    async with deployment(again=AGAIN if pingback_id is None else look) as here:
        if merchant is not None:
            resent, without_url = await _resend_failed(here.database, merchant)
        else:
            assert pingback_id is not None
            shop = await shop_of_pingback(here.database, pingback_id)
            elsewhere = await find_elsewhere(here.database, shop, pingback_id, url)
            now = utc_now()
            again = await resend_logged(
                here.database,
                shop,
                COMMAND_LINE,
                pingback_id,
                url=elsewhere.url,
                shop_now=await shop_time(here.database, shop, real_now=now),
                now=now,
            )
            resent, without_url, sent_to = [again.id], [], again.url
    if without_url:
        left = counted(len(without_url), "pingback")
        note(f"not sent, since there is no URL: {left}; set one: paydesk merchant set {merchant} --help")
    if as_json:
        show_json({"resent": resent, "without_url": without_url})
    elif pingback_id is not None:
        typer.echo(f"pingback {pingback_id} is sent again now to {sent_to}; see: paydesk pingback show {pingback_id}")
    else:
        typer.echo(f"sent again now: {counted(len(resent), 'pingback')}")


async def _resend_failed(database: Database, merchant_id: int) -> tuple[list[int], list[int]]:
    """Resend what is exhausted; the ids of those resent and of those that have no URL to go to."""
    await find_merchant(database, merchant_id)
    resent: list[int] = []
    without_url: list[int] = []
    exhausted = await exhausted_pingbacks(database, merchant_id)
    with progress("Resending", len(exhausted)) as step:
        for shop, pingback_id in exhausted:
            try:
                now = utc_now()
                there = await shop_time(database, shop, real_now=now)
                if await resend_if_failed(database, shop, COMMAND_LINE, pingback_id, shop_now=there, now=now):
                    resent.append(pingback_id)
            except Conflict:
                without_url.append(pingback_id)
            step()
    return resent, without_url


def _listed(merchant_id: int, one: Pingback) -> dict[str, object]:
    """A pingback as JSON: its payload stands in it as the object that it is."""
    facts = {each.name: getattr(one, each.name) for each in fields(Pingback)}
    return {"merchant_id": merchant_id} | facts | {"payload": msgspec.Raw(one.payload.encode())}


def _show_attempt(attempt: PingbackAttempt) -> None:
    typer.echo()
    show_facts(
        [
            ("attempt", attempt.number),
            ("at", attempt.at),
            ("to", attempt.url),
            *((f"  {name}", value) for name, value in attempt.request_headers.items()),
            ("body", attempt.request_body),
            ("status", attempt.status),
            ("answer", attempt.response_body),
            ("took", f"{attempt.duration_ms} ms"),
            ("error", attempt.error),
        ]
    )
