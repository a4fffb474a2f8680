"""Which cell a database is: one of several deployments that share out merchants.

Cell *c* draws its ids from *c* times 10^13 on, at first (see `ranges`), so that an id says where it
was born and none comes twice, wherever its merchant lives later. A deployment that stands alone is
cell 0.
"""

from __future__ import annotations

from paydesk.adapters.vault import Vault
from paydesk.core.card_numbers import begins_like_a_card
from paydesk.core.errors import SetupError
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements

queries = load_statements(__package__ or "", "numbers.sql")

IDS_OF_A_CELL = 10**13
"""How many ids of each kind a cell has for itself."""


CELLS = 900
"""How many numbers there are for cells: all ids stay below 2^53."""

_FIRST_DIGITS = 10**10
"""Ids that have their first four digits in common with a multiple of it, or more: schemes are told
by no more."""


def has_ids_like_cards(cell: int) -> bool:
    """Whether ids of a cell have the first digits and the length of a scheme's card numbers."""
    ids = range(cell * IDS_OF_A_CELL, (cell + 1) * IDS_OF_A_CELL, _FIRST_DIGITS)
    return cell > 0 and any(begins_like_a_card(str(one)) for one in ids)


async def begin_cell(database: Database, cell: int | None) -> None:
    """Make a database that has given out nothing yet that of a cell (None: leave it as it is).

    Raises: SetupError if it is another cell's, or has given out ids, or if the cell's ids would be
        taken for card numbers.
    """
    if cell is None or cell == await queries.cell(database):
        return
    if has_ids_like_cards(cell):
        near = next(other for other in range(cell + 1, CELLS) if not has_ids_like_cards(other))
        raise SetupError(
            f"PAYDESK_CELL: ids of cell {cell} would begin like card numbers, which are refused and masked wherever "
            f"none belong; take another number, {near} for example"
        )
    if not await queries.begin_cell(database, cell=cell):
        await refuse_other_cell(database, cell)


async def refuse_other_cell(database: Database, cell: int | None) -> None:
    """Make sure that nobody works on another cell's database; `cell` is what the settings
    say, None if nothing.

    Raises: SetupError.
    """
    if cell is None or cell == (known := await queries.cell(database)):
        return
    raise SetupError(
        f"this database is cell {known}, PAYDESK_CELL says {cell}: correct PAYDESK_CELL or PAYDESK_DATABASE_URL. "
        "A database becomes a cell before it has given out ids: for a new cell, take an empty one"
    )


def secret_print(vault: Vault) -> bytes:
    """By what a deployment's secret key is told from another, without being known."""
    return vault.fingerprint("", purpose="secret of all cells")


async def secret_noted(database: Database) -> bytes | None:
    """What a cell has noted of its secret key; None: nothing yet."""
    noted: bytes | None = await queries.secret_noted(database)
    return noted


async def note_secret(database: Database, vault: Vault) -> None:
    """Note by what a cell's secret key is known again, so that home can tell whether it is the same
    as all cells'.

    Raises: SetupError if the cell has joined others under another one.
    """
    known = secret_print(vault)
    if await secret_noted(database) == known or await queries.note_secret(database, print=known) is not None:
        return
    raise SetupError(
        "PAYDESK_SECRET_KEY is another one than this cell had when it joined the others; put that back: what is "
        "entered in the directory is found by it alone"
    )
