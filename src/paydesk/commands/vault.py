"""`paydesk vault`: what rests sealed under which key, moving it to the newest,
erasing what nothing needs.
"""

from __future__ import annotations

import typer

from paydesk.adapters.acquirers.simulator import SimulatedAcquirer
from paydesk.adapters.vault import Vault
from paydesk.commands.connecting import command, deployment
from paydesk.commands.printing import AsJson, counted, note, progress, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.domain.cells.fencing import fences
from paydesk.domain.sealing.hiding_links import hide_links
from paydesk.domain.sealing.resealing import (
    KeysInUse,
    forget_fingerprints,
    forget_spare_numbers,
    held,
    merchants_with_numbers,
)
from paydesk.domain.sealing.resealing import reseal as reseal_all

app = typer.Typer(help="See and renew what rests encrypted.", no_args_is_help=True)


@app.command(epilog="Example: paydesk vault status --json")
@command
async def status(as_json: AsJson = False) -> None:
    """Count the values of each place by the key that they are sealed under."""
    async with deployment() as here:
        found = await held(here.database)
    if as_json:
        show_json(_report(found, here.vault))
    else:
        _show(found, here.vault)


@app.command(epilog="Example: paydesk vault reseal")
@command
async def reseal(as_json: AsJson = False) -> None:
    """Move every sealed value to the newest key, while the service runs;
    may be stopped and called again.

    Exit status 1 if something is left under another key, because that key is not configured, or its
    merchant is on the way to another cell or from there.
    """
    async with deployment() as here:
        before = await held(here.database)
        total = sum(one.older_than(here.vault.current_key_id) for one in before)
        with progress("Sealing anew", total) as step:
            moved = await reseal_all(here.database, here.vault, report=step)
        after = await held(here.database)
    left = sum(one.older_than(here.vault.current_key_id) for one in after)
    if as_json:
        show_json(_report(after, here.vault) | {"moved": moved})
    else:
        typer.echo(f"sealed anew under {here.vault.current_key_id}: {counted(sum(moved.values()), 'value')}")
        _show(after, here.vault)
    if left:
        note(
            f"left under another key: {counted(left, 'value')}; put that key back behind if it is not configured, let "
            "merchants who are on their way to another cell arrive, and call this again"
        )
        raise typer.Exit(1)


@app.command(epilog="Example: paydesk vault sweep")
@command
async def sweep(as_json: AsJson = False) -> None:
    """Erase card numbers that nothing needs and hide customers' links: once after an upgrade.

    Processes of the version before kept them until they were restarted. Links that were given out
    go on working. What is of a merchant on the way to another cell or from there is left until
    the next call.
    """
    # Stripe's library is large: only who uses it loads it.
    from paydesk.adapters.acquirers.stripe import StripeAcquirer

    keepers = [kind.name for kind in (SimulatedAcquirer, StripeAcquirer) if kind.keeps_cards]
    forgotten = 0
    async with deployment() as here:
        await forget_fingerprints(here.database)
        hidden = await hide_links(here.database, here.vault)
        merchants = await merchants_with_numbers(here.database)
        with progress("Looking through merchants", len(merchants)) as step:
            for merchant_id in merchants:
                forgotten += await forget_spare_numbers(here.database, merchant_id, keepers, now=utc_now())
                step()
        left = [str(fence.merchant_id) for fence in await fences(here.database) if fence.moved_at is None]
    if left:
        note(f"left, on the way to another cell or from there: merchants {', '.join(left)}; call this again")
    if as_json:
        show_json({"erased": forgotten, "links_hidden": hidden})
    else:
        typer.echo(f"erased: {counted(forgotten, 'card number')}")
        typer.echo(f"hidden: {counted(hidden, 'link')}")


def _report(found: list[KeysInUse], vault: Vault) -> dict[str, object]:
    newest = vault.current_key_id
    return {
        "newest_key": newest,
        "left": sum(one.older_than(newest) for one in found),
        "places": [
            {
                "name": one.place.name,
                "table": one.place.table,
                "column": one.place.column,
                "needed": one.place.needed,
                "by_key": dict(one.by_key),
                "left": one.older_than(newest),
            }
            for one in found
        ],
    }


def _show(found: list[KeysInUse], vault: Vault) -> None:
    rows = [
        (f"{one.place.table}.{one.place.column}", key, count, _standing(key, vault), one.place.needed)
        for one in found
        for key, count in sorted(one.by_key.items())
    ]
    show_table(("column", "key", "values", "", "needed"), rows)


def _standing(key_id: str, vault: Vault) -> str:
    if key_id == vault.current_key_id:
        return "newest"
    return "older" if vault.knows(key_id) else "not configured"
