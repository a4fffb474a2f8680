"""`paydesk cell maps`: what HAProxy needs to lead requests to the cell of their merchant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.printing import AsJson, show_json
from paydesk.domain.cells.maps import write_maps


@command
async def maps(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", file_okay=False, exists=True, help="Where HAProxy reads its maps.")
    ],
    as_json: AsJson = False,
) -> None:
    """Write HAProxy's maps from the directory: merchants, fingerprints of keys and e-mails, hosts.

    A file that says the same stays as it is; reload HAProxy if any changed. `keys.cfg` holds the
    keys of the fingerprints, for HAProxy's user alone.
    """
    async with deployment() as here:
        changed = await write_maps(here.database, here.vault, folder)
    if as_json:
        show_json({"changed": changed})
    else:
        typer.echo(f"changed: {', '.join(changed)}" if changed else "nothing changed")
