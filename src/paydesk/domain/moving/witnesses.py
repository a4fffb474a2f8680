"""Where a merchant is, by what there is of it in both cells, the fences there, and the directory.

Any of these may have been put back to a time before: the other ones say so then. What they don't
agree on is refused before anything is done, so that nobody has a merchant twice, or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from paydesk.core.errors import Conflict, NotFound
from paydesk.database.pool import Database
from paydesk.domain.cells.directory import Kind, cell_by_number, find_cell
from paydesk.domain.cells.fencing import Fence, find_fence
from paydesk.domain.moving.copying import Side, queries
from paydesk.domain.moving.requirements import Cells

MEND = "paydesk cell check --mend"


@dataclass(frozen=True, slots=True)
class Witnesses:
    """What a move from cell `cells.here` to cell `cells.there` finds of a merchant.

    The fences in both; whether the merchant itself is in the one (`is_here`), and in the other
    (`is_there`), where it comes with the last pass; and the cell that the directory leads to, if
    there is a directory, and it knows the merchant. It leads only to cells that were added.
    """

    merchant_id: int
    cells: Cells
    here: Fence | None
    there: Fence | None
    is_here: bool
    is_there: bool
    has_directory: bool
    was_added: bool
    led_to: int | None

    @property
    def has_moved(self) -> bool:
        """Whether it was decided here that the merchant is another cell's."""
        return self.here is not None and self.here.moved_at is not None

    @property
    def arrives(self) -> bool:
        """Whether a copy from here is in the other cell, which is not open there."""
        return self.there is not None and self.there.arrives and self.there.other_cell == self.cells.here

    @property
    def is_left_over_there(self) -> bool:
        """Whether what has come to the other cell is left over: it came from a third one, out of
        which the merchant has come here since.
        """
        came = self.there is not None and self.there.arrives and not self.arrives
        return came and self.is_here and self.here is None and self.led_to == self.cells.here

    @property
    def is_open_there(self) -> bool:
        """Whether the other cell works with the merchant."""
        return self.is_there and self.there is None

    @property
    def is_only_there(self) -> bool:
        """Whether the other cell works with the merchant, the directory leads there, and nothing of
        it is here.
        """
        led_there = not self.has_directory or self.led_to == self.cells.there
        return self.here is None and not self.is_here and self.is_open_there and led_there

    @property
    def is_left_there(self) -> bool:
        """Whether all that there is of the merchant is what came to the other cell, which has still
        to open it: here nothing is left, not even that it went.
        """
        led_there = not self.has_directory or self.led_to == self.cells.there
        return self.here is None and not self.is_here and self.arrives and self.is_there and led_there

    @property
    def is_to_come_again(self) -> bool:
        """Whether all of a merchant that moved is here still, and does not work in the other cell.

        What is there may be an earlier copy; or it is gone, and the directory knows of no third
        cell that has it.
        """
        led = self.led_to in (self.cells.here, self.cells.there)
        return self.has_moved and self.is_here and (self.arrives if self.is_there else led)


async def look(source: Side, target: Side, home: Database | None, merchant_id: int, cells: Cells) -> Witnesses:
    """Ask all who know where a merchant is; `home` is the database whose directory leads to it.

    Raises: Conflict if the fence here is another move's.
    """
    here, there = await find_fence(source.database, merchant_id), await find_fence(target.database, merchant_id)
    is_here = await queries.is_there(source.database, merchant_id=merchant_id)
    is_there = await queries.is_there(target.database, merchant_id=merchant_id)
    # The directory comes last: whom the other cell has handed over meanwhile it leads on by then.
    led = None if home is None else await find_cell(home, Kind.merchant, str(merchant_id))
    was_added = home is None or await cell_by_number(home, cells.there) is not None
    led_to = None if led is None else led.number
    seen = Witnesses(merchant_id, cells, here, there, is_here, is_there, home is not None, was_added, led_to)
    _refuse_other_moves(seen)
    return seen


def require_not_elsewhere(seen: Witnesses) -> None:
    """Make sure that a merchant of whom nothing is here has not gone to a third cell.

    Raises: NotFound, which says what is left to do.
    """
    if not seen.is_here and seen.here is None:
        _refuse_third_cell(seen)


def require_may_go(seen: Witnesses) -> None:
    """Make sure that a move may begin or go on by what is found of the merchant.

    Raises: Conflict, NotFound, which say what is to be done instead.
    """
    _refuse_third_cell(seen)
    if not seen.is_here and not seen.has_moved and not seen.is_left_there:
        raise _not_here(seen)
    if seen.has_directory and seen.led_to is None:
        raise Conflict(f"the directory does not know merchant {seen.merchant_id}: {MEND} enters it, then move it")
    if not seen.was_added:
        raise Conflict(
            f"cell {seen.cells.there} is not in the directory, which could not lead to merchant {seen.merchant_id} "
            f"there: add it first, in the home cell, by: paydesk cell add {seen.cells.there}"
        )
    if not seen.has_moved and seen.is_here and seen.is_open_there:
        raise _in_both(seen)
    if seen.has_moved and not seen.is_there and not seen.is_to_come_again:
        assert seen.here is not None
        raise Conflict(
            f"cell {seen.cells.there} does not have merchant {seen.merchant_id} any more: its database came back from "
            f"before {seen.here.moved_at:%Y-%m-%d %H:%M:%S} UTC, when it had moved there: put it back to a later time, "
            "and run the same command again; nothing is deleted here until then"
        )


def require_may_be_cancelled(seen: Witnesses) -> None:
    """Make sure that a merchant can go on here, which is in no other cell then.

    Raises: Conflict, which says what is to be done instead.
    """
    if seen.is_here and seen.is_open_there and not seen.has_moved:
        raise _in_both(seen)
    if seen.is_left_over_there:
        return
    if seen.here is None and not seen.arrives:
        where = f": it is in cell {seen.cells.there}" if seen.is_open_there else ""
        raise Conflict(f"merchant {seen.merchant_id} is not being moved{where}")
    if seen.has_moved:
        raise already_there(seen.merchant_id, seen.cells.there)
    _refuse_third_cell(seen)
    if not seen.is_here:
        raise _not_here(seen)
    if seen.is_there and seen.led_to == seen.cells.there:
        # Here it has gone back to before that was decided, or the directory is an old one.
        raise already_there(seen.merchant_id, seen.cells.there)


def require_may_be_removed(seen: Witnesses, *, home_came_back: bool = False) -> None:
    """Make sure that the other cell works with a merchant who is here, too, so that the copy here
    may go as far as these witnesses know; a directory that came back from before is none of them.

    Raises: Conflict, NotFound, which say what is to be done instead.
    """
    _refuse_third_cell(seen)
    merchant, here, there = f"merchant {seen.merchant_id}", seen.cells.here, seen.cells.there
    if seen.is_only_there:
        raise Conflict(f"there is no {merchant} here: it is in cell {there} alone, and no copy of it is left to remove")
    if not seen.is_here and seen.here is None:
        raise _not_here(seen)
    if seen.has_directory and seen.led_to is None:
        raise Conflict(f"the directory does not know {merchant}: {MEND} enters it")
    if seen.has_directory and seen.led_to != there and not home_came_back:
        raise Conflict(
            f"the directory leads to {merchant} here, so that what is here is not to go: either the copy is what cell "
            f"{there} has, and goes by the same command there, with --to {here}; or the directory came back from "
            f"before {merchant} moved to cell {there}, too: then the same command with --home-came-back leads it there"
        )
    if seen.arrives or (seen.has_moved and not seen.is_open_there):
        raise Conflict(f"{merchant} is on the way to cell {there}, and not open there: the move again goes on with it")
    if not seen.is_open_there:
        raise Conflict(f"cell {there} does not have {merchant}: what is here is all that there is of it")


def already_there(merchant_id: int, cell: int) -> Conflict:
    """Why a merchant can't go on here."""
    return Conflict(f"merchant {merchant_id} is in cell {cell} already: the move again ends it")


def _refuse_other_moves(seen: Witnesses) -> None:
    here, merchant = seen.here, f"merchant {seen.merchant_id}"
    if here is None:
        return
    if here.arrives:
        first = _by(seen, here.other_cell, seen.cells.here)
        raise Conflict(f"{merchant} is coming here from cell {here.other_cell}: end that move first, {first}")
    if here.other_cell != seen.cells.there and not _has_gone_on(seen):
        if seen.has_moved and (first := _other_move(seen)):
            raise Conflict(
                f"{merchant} has gone to cell {here.other_cell}, and on from there: end the move that is under way "
                f"first, {first}; then the same command"
            )
        given_up = "" if seen.has_moved else ", or is given up with --cancel"
        raise Conflict(
            f"{merchant} is on the way to cell {here.other_cell}, or there already: that move goes on by: "
            f"{_move(seen, here.other_cell)}{given_up}"
        )


def _other_move(seen: Witnesses) -> str:
    """By what the move is ended that the other cell is in with a third one; empty if in none."""
    there = seen.there
    if there is None or seen.arrives:
        return ""
    ways = (there.other_cell, seen.cells.there)
    return _by(seen, *(ways if there.arrives else reversed(ways)))


def _by(seen: Witnesses, source: int, target: int) -> str:
    """In which cell which command goes on with another move."""
    return f"in cell {source}, by: {_move(seen, target)}"


def _move(seen: Witnesses, target: int | None) -> str:
    return f"paydesk merchant move {seen.merchant_id} --to {target}"


def _has_gone_on(seen: Witnesses) -> bool:
    """Whether the merchant has come to this other cell from the one that the fence names, so that
    what is left here, or came back, may go.
    """
    return (seen.has_moved or seen.is_here) and seen.is_open_there and seen.led_to == seen.cells.there


def _refuse_third_cell(seen: Witnesses) -> None:
    """Refuse whoever is in another cell than both, or on the way to one, or from one.

    Raises: Conflict, NotFound.
    """
    merchant, there = f"merchant {seen.merchant_id}", seen.there
    if seen.led_to not in (None, seen.cells.here, seen.cells.there):
        if not seen.is_here and seen.here is None:
            left = (
                f"; what came to cell {seen.cells.there} from here is emptied there by: "
                f"paydesk merchant move {seen.merchant_id} --to {seen.cells.there} --cancel"
            )
            raise NotFound(
                f"there is no {merchant} here: the directory leads to it in cell {seen.led_to}"
                f"{left if seen.arrives else ''}"
            )
        end = f"what is left here goes by: {_move(seen, seen.led_to)}"
        if first := _other_move(seen):
            end = f"end the move that is under way first, {first}; then the same command says what is left to do"
        came_back = (
            "what is here came back from before it went there, and goes by: paydesk merchant move "
            f"{seen.merchant_id} --to {seen.led_to} --remove-copy; if that cell does not have it, run {MEND}"
        )
        raise Conflict(
            f"the directory leads to {merchant} in cell {seen.led_to}: {end if seen.has_moved else came_back}"
        )
    if there is not None and there.arrives and not seen.arrives:
        left_over = (
            "; if it is left over, as the merchant has come here since, the same command with --cancel empties it"
        )
        raise Conflict(
            f"{merchant} is coming to cell {seen.cells.there} from cell {there.other_cell}: end that move first, "
            f"{_other_move(seen)}{left_over if seen.is_left_over_there else ''}"
        )
    if there is not None and not there.arrives:
        raise Conflict(
            f"{merchant} can't move: the other cell has handed it over to cell {there.other_cell}, or is about to: end "
            f"that move first, {_other_move(seen)}"
        )


def _not_here(seen: Witnesses) -> Conflict | NotFound:
    """What to do about a merchant who is not here, and whom no fence here knows."""
    merchant, there = f"merchant {seen.merchant_id}", seen.cells.there
    if seen.is_open_there:
        led = "" if seen.led_to in (None, there) else f", where the directory does not lead: run {MEND}"
        return Conflict(f"there is no {merchant} here: it is in cell {there}{led}")
    if seen.arrives:
        part = "a copy of it that is not open" if seen.is_there else "a part of it"
        return Conflict(
            f"there is no {merchant} here, and cell {there} has {part}: the database here, or there, came back from "
            "before: put it back to a later time, and run the same command again; nothing was deleted"
        )
    if seen.led_to in (seen.cells.here, there):
        return NotFound(
            f"there is no {merchant}, although the directory leads to cell {seen.led_to}: its database came back from "
            "before it was there: put it back to a later time"
        )
    return NotFound(f"there is no {merchant}")


def _in_both(seen: Witnesses) -> Conflict:
    """What to do about a merchant who is in both cells: whose database came back from before can't
    be told for certain, since it may have brought the directory back, too.
    """
    here, merchant = "It stays closed here" if seen.here else "It is open in both", f"merchant {seen.merchant_id}"
    return Conflict(
        f"{merchant} is in both cells: one of their databases came back from before it had moved to the other. {here}; "
        "in the cell that came back nobody is to work with it, and the copy is to go: there, paydesk merchant suspend "
        f"{seen.merchant_id} stops its sales, and paydesk merchant move {seen.merchant_id} --to CELL --remove-copy "
        "deletes it (CELL keeps the merchant)"
    )
