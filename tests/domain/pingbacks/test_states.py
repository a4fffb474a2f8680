import re

from paydesk.database.pool import Database
from paydesk.domain.pingbacks.states import TRANSITIONS, PingbackState


def test_every_state_is_in_the_table_of_transitions() -> None:
    assert set(TRANSITIONS) == set(PingbackState)


async def test_the_database_knows_the_same_states(database: Database) -> None:
    check = await database.fetchval(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = 'pingback_state_check'"
    )
    assert set(re.findall(r"'([a-z]+)'", check)) == set(PingbackState)
