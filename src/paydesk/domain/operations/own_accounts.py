"""Whose account is asked under a name: an acquirer's own account is one account here.

Whatever keys it has: else its list would be read twice, and what it took under one name be taken
for forgotten under the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import asyncpg
import structlog

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.adapters.acquirers.own_ids import UNTOLD, own_id_of
from paydesk.core.errors import Conflict, Malformed
from paydesk.core.wording import noted
from paydesk.database.records import record_if_any
from paydesk.database.statements import Connection
from paydesk.domain.acquirers.accounts import queries
from paydesk.domain.acquirers.leases import Within
from paydesk.domain.acquirers.opening import AccountToOpen, OpenAcquirers
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.domain.operations.remembered_accounts import queries as remembered
from paydesk.domain.payments.desk import Desk

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Lost:
    """An account that was forgotten, by what processes remember of it, or that another cell asks,
    where its merchant is.
    """

    account: str
    kind: str
    own_id: str
    moved_to: int | None


_UNTOLD_REASON = "a restricted key must be allowed to read its own account"


async def identify(desk: Desk, account: AccountToOpen, *, now: datetime) -> str:
    """Whose account it is that is opened with this; UNTOLD for a simulated bank. Moves no money.

    Raises: Malformed if it does not answer, or not say; Conflict.
    """
    known = desk.acquirers
    if not isinstance(known, OpenAcquirers):
        return UNTOLD
    try:
        return await known.identify(account, now=now)
    except (AcquirerRefused, OutcomeUnknown) as error:
        needs = "key" if account.key else "address"
        why = f"the acquirer does not answer to this {needs}, let its list be read, and say whose it is"
        raise Malformed(f"{why} ({_UNTOLD_REASON}): {error}" if account.key else why, needs) from None


async def require_new(desk: Desk, name: str, kind: str, own_id: str, printed: bytes) -> None:
    """Make sure that no other name has this account, whose key is `printed` so, and no other cell.

    Raises: Conflict.
    """
    await _require_as_lost(desk, name, kind, own_id, printed)
    if own_id == UNTOLD:
        return
    settled = await _settled(desk, kind)
    if own_id == settled:
        raise Conflict(f"this is the account of the settings, {own_id}, with another key")
    of = await queries.account_of(desk.database, own_id=own_id)
    if of is not None and of != name:
        raise Conflict(f'this is the account "{of}", {own_id}, with another key: change its key instead')


async def _require_as_lost(desk: Desk, name: str, kind: str, own_id: str, printed: bytes) -> None:
    """Make sure that an account that was forgotten comes again as what it was, and that no other
    cell asks it. Raises: Conflict.
    """
    row = await remembered.lost_as(desk.database, account=name, own_id=own_id, key_print=printed)
    lost = record_if_any(_Lost, row)
    if lost is not None and lost.moved_to is not None:
        raise Conflict(
            f'"{lost.account}" is in cell {lost.moved_to}, with its merchant, and is asked there: two cells would '
            "both book what its list says"
        )
    if lost is None or (lost.account, lost.kind, lost.own_id or own_id) == (name, kind, own_id):
        return
    what = f"{lost.kind}, {lost.own_id}" if lost.own_id else lost.kind
    raise Conflict(
        f'"{lost.account}" was another account ({what}) before this database forgot it: give that one its name again, '
        "and another one another name"
    )


async def require_same(desk: Desk, name: str, kind: str, own_id: str, printed: bytes) -> None:
    """Make sure that a new key is one of the account that has the name. Raises: Conflict.

    Of an account whose own id nobody has learnt yet, the new one is believed: the old key may have
    been revoked.
    """
    await require_new(desk, name, kind, own_id, printed)
    before = await queries.own_id(desk.database, account=name)
    if before is not None and before != own_id:
        raise Conflict(
            f'this key is of another account, {own_id}: "{name}" is {before}, and what it took can only be given back '
            "there; add the other account under a name of its own"
        )


async def keep(connection: Connection, name: str, own_id: str) -> None:
    """Write down whose account a name is, on the transaction that adds or changes it.

    Raises: Conflict if another name has it, or this name another one.
    """
    if own_id == UNTOLD:
        return
    try:
        kept = await queries.keep_own_id(connection, account=name, own_id=own_id)
    except asyncpg.UniqueViolationError:
        kept = None
    if kept is None:
        raise Conflict(f'another account is {own_id}, or "{name}" is another one')


async def _settled(desk: Desk, kind: str) -> str | None:
    """Whose account that of the settings is, if they have one of this kind.

    Raises: Conflict if nobody can say.
    """
    if kind not in (desk.live_acquirer, desk.test_acquirer):
        return None
    try:
        return await own_id_of(desk.acquirers[kind])
    except (AcquirerRefused, OutcomeUnknown) as error:
        known: str | None = await queries.own_id(desk.database, account=kind)
        if known is None:
            why = f"the account of the settings does not say which one it is ({_UNTOLD_REASON}): {error}"
            raise Conflict(why) from None
        return known


async def learn(desk: Desk, name: str, *, within: Within, now: datetime) -> None:
    """Write down whose account is asked under a name, where that is not known or may change; raise
    an alarm if another name has it, too. Moves no money. Raises: ReadByAnother.
    """
    is_settled = name in (desk.live_acquirer, desk.test_acquirer)
    if not is_settled and await queries.own_id(desk.database, account=name) is not None:
        return
    try:
        own_id = await own_id_of(desk.acquirers[name])
    except (AcquirerRefused, OutcomeUnknown) as error:
        log.warning("an acquirer does not say whose account is asked", acquirer=name, why=str(error))
        return
    if own_id == UNTOLD:
        return
    try:
        async with within() as connection:
            learnt = await queries.change_own_id(connection, account=name, own_id=own_id)
        if learnt is not None:
            log.info("learnt whose account is asked", acquirer=name, own_id=own_id)
    except asyncpg.UniqueViolationError:
        pass  # Another name was faster: the next statement finds it.
    kind = AlarmKind.one_account_twice
    async with within() as connection:
        of = await queries.account_of(connection, own_id=own_id)
        if of == name:
            await settle_alarms(connection, kind, [name], shop=None, by=noted("it is one account"), now=now)
            return
        why = noted("it is %(own_id)s at the acquirer, as %(of)s is: two keys of one account", own_id=own_id, of=of)
        await raise_alarms(connection, [Alarm(kind, name, why)], now=now)
