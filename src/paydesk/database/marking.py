"""The mark of a new database: put in the transaction of its first step, taken away in that of the
last.

Who is killed in between leaves it, and the next call goes on as with a new database. That is safe
since nobody works with one that is marked: this code asks for the steps that it lacks, and code of
before, and code that knows of no marks, find that it needs newer one.
"""

from __future__ import annotations

from paydesk.database.pool import Database
from paydesk.database.statements import Connection

MARK = 0
"""The number under which it stands in the list of steps."""

_NAME = "new_database"
_KEEP = """
with kept as (
    update schema_migration set oldest_code = greatest(oldest_code, $3) where number = $1 returning number
), put as (
    insert into schema_migration (number, name, oldest_code)
    select $1, $2, $3 where not exists (select from schema_migration) returning number
)
select number from kept union all select number from put
"""
_TAKE_AWAY = "delete from schema_migration where number = $1 and oldest_code <= $2"


async def keep_mark(connection: Connection, newest: int) -> bool:
    """Whether the database is new to who is about to apply a step alone, and knows steps up to
    `newest`: it is marked, or has no step yet, and is marked by this.
    """
    return await connection.fetchval(_KEEP, MARK, _NAME, newest + 1) is not None


async def take_mark_away(database: Database | Connection, newest: int) -> None:
    """All steps are applied up to `newest`: from here on it is a database as any other, unless
    newer code has begun to go on with it.
    """
    await database.execute(_TAKE_AWAY, MARK, newest + 1)


def code_needed(number: int, oldest_code: int) -> int:
    """The step that code must know by what stands under a number in the list.

    A mark names one more, so that code which knows of none does not run even if it knows the same
    steps.
    """
    return oldest_code - 1 if number == MARK else oldest_code
