"""A till to pay at, without a web application, over a database that refuses transitions the tables
don't allow.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests import set_back
from tests.till import Till

from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.states import ATTEMPT_TRANSITIONS, MOVEMENT_TRANSITIONS, PAYMENT_TRANSITIONS

GUARDED = (
    ("payment", PAYMENT_TRANSITIONS),
    ("payment_attempt", ATTEMPT_TRANSITIONS),
    ("movement", MOVEMENT_TRANSITIONS),
)


@pytest.fixture
def till(desk: Desk, shop: Shop) -> Till:
    return Till(desk, shop)


@pytest.fixture(autouse=True)
async def _no_other_lookups(database: Database) -> None:
    """A janitor asks for all merchants, so that what other tests have left would be in the way."""
    await set_back.nothing_to_look_up(database)
    await database.execute(
        "update movement set lookup_at = lookup_at + interval '100 years' where lookup_at < now() + interval '1 year'"
    )


@pytest.fixture(autouse=True, scope="module")
async def _guarded_transitions(database: Database) -> AsyncIterator[None]:
    """Make the database refuse transitions that the tables of states.py don't know,
    and remember those that it made.

    Once for all tests of a file: each change of a table has every statement planned anew.
    """
    await database.execute(
        """
        create table transition (row_of text, was text, became text, made boolean not null default false);
        create function guard_transition() returns trigger language plpgsql as $$
        begin
            if old.state <> new.state then
                update transition set made = true where (row_of, was, became) = (tg_table_name, old.state, new.state);
                if not found then
                    raise exception '% may not go from % to %', tg_table_name, old.state, new.state;
                end if;
            end if;
            return new;
        end $$;
        create trigger guarded before update on payment for each row execute function guard_transition();
        create trigger guarded before update on payment_attempt for each row execute function guard_transition();
        create trigger guarded before update on movement for each row execute function guard_transition();
        """
    )
    await database.executemany(
        "insert into transition (row_of, was, became) values ($1, $2, $3)",
        [
            (table, str(was), str(became))
            for table, transitions in GUARDED
            for was, reached in transitions.items()
            for became in reached
        ],
    )
    try:
        yield
    finally:
        await database.execute("drop function guard_transition cascade; drop table transition")
