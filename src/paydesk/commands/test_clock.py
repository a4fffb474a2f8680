"""`paydesk clock`: a merchant's test clock, by which years of subscriptions pass in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from paydesk.commands.connecting import Deployment, command, deployment, told_if_it_goes_away
from paydesk.commands.printing import AsJson, counted, note, progress, show_facts, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed
from paydesk.core.periods import Period, parse_period
from paydesk.domain.merchants.merchant import find_merchant
from paydesk.domain.merchants.test_clock import TestClock, read_clock
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.test_clock.advancing import MOST_EVENTS, Progress, Report, Summary
from paydesk.domain.test_clock.advancing import advance as advance_clock
from paydesk.domain.test_clock.resetting import IN_ORDER, reset_test_side
from paydesk.equipment import (
    accounts_open,
    history_watched,
    outbound_client,
    payment_desk,
    sender_settings,
    test_acquirer,
)

app = typer.Typer(help="Move a merchant's test clock. Live data has none.", no_args_is_help=True)

MerchantId = Annotated[int, typer.Argument(metavar="MERCHANT_ID", min=1, help="The merchant's id.")]


@app.command(epilog="Example: paydesk clock show 1")
@command
async def show(merchant_id: MerchantId, as_json: AsJson = False) -> None:
    """Show the time of a merchant's test side, and how far it runs ahead."""
    async with deployment() as here:
        clock = await read_clock(here.database, merchant_id, real_now=utc_now())
    if as_json:
        show_json(_clock(clock))
    else:
        show_facts(
            [
                ("merchant", merchant_id),
                ("test side's time", clock.now),
                ("ahead by", clock.ahead or "nothing: it is real time"),
                ("moving just now", clock.moving),
            ]
        )


@app.command(epilog="Example: paydesk clock advance 1 31d")
@command
async def advance(
    merchant_id: MerchantId,
    by: Annotated[str, typer.Argument(metavar="PERIOD", help="How far: a number and d, w, m or y, like 31d or 24m.")],
    events: Annotated[int, typer.Option(min=0, max=100_000, help="How many events are printed at most.")] = MOST_EVENTS,
    as_json: AsJson = False,
) -> None:
    """Move the test side forward: what falls due on the way happens, in order,
    each at its own time.

    Renewals, retries, stops, expiries and pingbacks; a service may run meanwhile. Interrupted, it
    stays where it is.
    """
    period = parse_period(by, "PERIOD")
    async with deployment(moves_money=True) as here:
        await find_merchant(here.database, merchant_id)
        before = await read_clock(here.database, merchant_id, real_now=utc_now())
        with told_if_it_goes_away(_the_rest(before)), _bar() as report:
            summary = await _advance(here, merchant_id, period, events, report)
    if as_json:
        show_json(asdict(summary))
        return
    _show_summary(summary)


def _the_rest(before: TestClock) -> str:
    """What to do with a clock that may have come a part of its way: the whole would be too far."""
    return (
        f"see how far it came from {before.now:%Y-%m-%d %H:%M:%S} UTC, paydesk clock show {before.merchant_id}, and "
        "advance it by the rest: nothing on the way is done twice"
    )


async def _advance(here: Deployment, merchant_id: int, by: Period, events: int, report: Report) -> Summary:
    """Advance with this process's own bank connection and sender."""
    # Nobody waits in front of a page: the simulated bank need not take its time.
    settings = here.settings.model_copy(update={"simulator_latency": 0.0})
    acquirer = test_acquirer(settings)
    outbound = await outbound_client(settings, here.database)
    try:
        desk = payment_desk(settings, here.database, here.vault, acquirer, gate=here.history.gate)
        sender = PingbackSender(here.database, here.vault, outbound, sender_settings(settings))
        async with accounts_open(desk), history_watched(settings, desk, here.history):
            return await advance_clock(desk, sender, merchant_id, by, report=report, most_events=events)
    finally:
        await outbound.close()
        await acquirer.close()


@app.command(epilog="Example: paydesk clock reset 1")
@command
async def reset(
    merchant_id: MerchantId,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete all of a merchant's test data and return its test side to real time.
    Live data stays.
    """
    async with deployment() as here:
        merchant = await find_merchant(here.database, merchant_id)
        if not yes and not _agreed(f"Delete all test data of merchant {merchant_id} ({merchant.name})?"):
            raise Malformed("nothing was deleted")
        with progress("Deleting", len(IN_ORDER)) as step:
            deleted = await reset_test_side(here.database, merchant_id, report=step)
    if as_json:
        show_json({"merchant_id": merchant_id, "deleted": deleted})
        return
    show_facts((name.replace("_", " "), number) for name, number in deleted.items() if number)
    typer.echo(f"the test side of merchant {merchant_id} is empty and back in real time")


def _agreed(question: str) -> bool:
    """Ask; no answer is a no."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        return False


@contextmanager
def _bar() -> Iterator[Report]:
    """A progress bar on stderr, by the test side's time, for the length of a block;
    none where that is no terminal.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("Advancing", total=1.0)

        def report(made: Progress) -> None:
            way = (made.target - made.start).total_seconds()
            done = (made.at - made.start).total_seconds() / way
            bar.update(task, completed=done, description=f"Advancing  {made.at:%Y-%m-%d}")

        yield report


def _clock(clock: TestClock) -> dict[str, object]:
    return {
        "merchant_id": clock.merchant_id,
        "now": clock.now,
        "ahead_seconds": clock.ahead.total_seconds(),
        "moving": clock.moving,
    }


def _show_summary(summary: Summary) -> None:
    show_table(
        ("time", "what", "subscription", "payment", "pingback"),
        [(one.at, one.what, one.subscription_id, one.payment_id, one.pingback_id) for one in summary.events],
    )
    left_off = sum(summary.counts.values()) - len(summary.events)
    if left_off:
        note(f"not printed: {counted(left_off, 'more event')}; see --events")
    if summary.unsettled:
        ids = ", ".join(str(one) for one in summary.unsettled[:10])
        note(f"the outcome of a charge is not known yet, workers will settle it; subscriptions: {ids}")
    if summary.pingbacks_in_hand:
        note(f"still being sent: {counted(summary.pingbacks_in_hand, 'pingback')}")
    typer.echo(_in_words(summary.started_at, summary))


def _in_words(start: datetime, summary: Summary) -> str:
    """One line: from when to when, and how often each kind of thing happened."""
    kinds = ", ".join(f"{number} {what.replace('_', ' ')}" for what, number in sorted(summary.counts.items()))
    return f"from {start:%Y-%m-%d %H:%M:%S} to {summary.now:%Y-%m-%d %H:%M:%S}Z: {kinds or 'nothing fell due'}"
