"""However commands that move a merchant among three cells run into each other, and whoever dies
where: the merchant is in one cell, with all that was written, and what is half-way can be ended.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from tests.domain.moving.interleaved import Playing, stop_at_statements
from tests.domain.moving.play import HERE
from tests.domain.moving.putting_back import Past
from tests.lengths import at_length, longer

from paydesk.core.clock import utc_now
from paydesk.domain.cells.directory import Entry, Kind, enter
from paydesk.domain.cells.fencing import fence
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.moving.tables import GUARDED

SEEDS = at_length(range(60), range(3))
COMMANDS = 8


@longer
async def test_a_merchant_is_in_one_cell_however_commands_run_into_each_other(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at_statements(monkeypatch)
    await keep_on_guard(past)
    for seed in SEEDS:
        playing = Playing(await with_a_merchant(past), Random(seed))
        await playing.play(COMMANDS)
        await playing.clear_up()
        await playing.prove()
        assert playing.wrong == [], "\n".join([f"seed {seed}:", *playing.told])


async def keep_on_guard(past: Past) -> None:
    """Somebody is fenced in each cell all the time, so that no trigger is switched, which takes
    most of the time of a move.
    """
    here, there = past.play.here.database, past.play.there.database
    for database in (here, there, past.home.database):
        one = await create_merchant(database, past.home.vault, name="stays", email="o@shop.example", now=utc_now())
        await fence(database, one.id, other_cell=9, tables=GUARDED)


async def with_a_merchant(past: Past) -> Past:
    """The play with a merchant that has sold nothing yet."""
    here, now = past.play.here, utc_now()
    made = await create_merchant(here.database, here.vault, name="moves", email="o@shop.example", now=now)
    await enter(past.home.database, [Entry(Kind.merchant, str(made.id), made.id)], HERE, now=now)
    return replace(past, play=replace(past.play, merchant=made))
