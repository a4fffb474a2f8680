"""The accounts at acquirers that serve a merchant alone go along: every process of the other cell
has opened them when the merchant opens there, and until then nobody there reads them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from paydesk.adapters.vault import Sealed, Vault
from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.acquirers.accounts import PURPOSE, WEBHOOK_PURPOSE
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.cells.fencing import in_flight
from paydesk.domain.cells.waits import Wait, Waits, unheard, wait_out
from paydesk.domain.moving.copying import Pair, Side

queries = load_statements(__package__ or "", "accounts.sql")

OPENED_AFTER = timedelta(seconds=15)
"""By when every process has opened an account, as with one that is added."""

OWN_IDS = ("acquirer_own_id",)
"""What the accounts are called that go: it is deleted with them, once that is noted."""

READ_FOR = 660.0
"""Seconds for which a reading is waited for: the lease of one that died ends before."""

CLOSED_FOR_READINGS = 5.0
"""Seconds for which a merchant stays fenced for a reading that began just before."""

ABOUT_ACCOUNTS = (
    AlarmKind.acquirer_out,
    AlarmKind.dispute_waits,
    AlarmKind.disputes_unread,
    AlarmKind.not_reconciled,
    AlarmKind.one_account_twice,
    AlarmKind.proceeds_differ,
    AlarmKind.refund_unknown,
    AlarmKind.refunds_unread,
)
"""The alarms that name an account: where it was, they are about nothing any more."""

IS_READ = (
    "what its account lists is being read still, which must come to its end here; the merchant goes on here: run the "
    "same command again"
)

_PAUSE = 0.2
_FOR_TESTS = "simulator"
"""The account of the settings for test payments, which every cell has."""


@dataclass(frozen=True, slots=True)
class OwnAccount:
    """An account that serves one merchant alone, as it rests in a cell; `account` is the rest of
    its row, which is the same in both. It was `asked_by` other cells before, and is `asked_here`.
    """

    id: int
    name: str
    kind: str
    live: bool
    key_print: bytes | None = field(repr=False)
    own_id: str
    key_sealed: bytes | None = field(repr=False)
    vault_key_id: str | None
    webhook_sealed: bytes | None = field(repr=False)
    webhook_key_id: str | None
    is_asked: bool
    asked_by: list[str]
    asked_here: str
    account: str

    @property
    def asked_so_far(self) -> list[str]:
        """The tags of the cells that will have asked it once it has gone from here."""
        return sorted({*self.asked_by, self.asked_here})

    def opened(self, vault: Vault) -> tuple[str, bytes | None, bytes | None]:
        """What it is: its row, its secret key, and what notifications to it are signed with.

        Raises: VaultError.
        """
        key = self._opened(vault, self.key_sealed, self.vault_key_id, PURPOSE)
        return self.account, key, self._opened(vault, self.webhook_sealed, self.webhook_key_id, WEBHOOK_PURPOSE)

    def _opened(self, vault: Vault, blob: bytes | None, key_id: str | None, purpose: str) -> bytes | None:
        if blob is None or key_id is None:
            return None
        return vault.open(Sealed(key_id, blob), purpose=purpose, merchant_id=0, row_id=self.id)


async def own_accounts(database: Database | Connection, merchant_id: int) -> list[OwnAccount]:
    """The accounts that serve a merchant alone."""
    return await records_of(OwnAccount, queries.own_accounts(database, merchant_id=merchant_id))


async def bring_accounts(opens: Vault, seals: Vault, pair: Pair) -> int:
    """Make the merchant's accounts there what they are here; how many values were sealed anew.

    One that is there as it is here stays, so that no process opens it once more.
    Raises: VaultError.
    """
    here = await own_accounts(pair.here, pair.merchant_id)
    there = {one.id: one for one in await own_accounts(pair.there, pair.merchant_id)}
    await queries.drop_others(pair.there, merchant_id=pair.merchant_id, ids=[one.id for one in here])
    await queries.is_there_again(pair.there, names=[one.name for one in here])
    sealed = 0
    for account in here:
        known = there.get(account.id)
        if known is None or (known.asked_by, *known.opened(seals)) != (account.asked_so_far, *account.opened(opens)):
            sealed += await _put(pair, opens, seals, account)
    return sealed


async def let_read(there: Connection, merchant_id: int) -> None:
    """Have the accounts be read at once where the caller's transaction has brought them, and
    nothing be told of them that was so when it brought them before; what waits is told anew.
    """
    await queries.end_leases(there, merchant_id=merchant_id)
    await _settle_told(there, merchant_id, "it came once more")
    await queries.tell_anew(there, merchant_id=merchant_id)


async def _put(pair: Pair, opens: Vault, seals: Vault, account: OwnAccount) -> int:
    row, key, secrets = account.opened(opens)
    of_key, of_secrets = [
        None if value is None else seals.seal(value, purpose=purpose, merchant_id=0, row_id=account.id)
        for value, purpose in ((key, PURPOSE), (secrets, WEBHOOK_PURPOSE))
    ]
    await queries.put_account(
        pair.there,
        account=row,
        key_sealed=of_key and of_key.blob,
        vault_key_id=of_key and of_key.key_id,
        webhook_sealed=of_secrets and of_secrets.blob,
        webhook_key_id=of_secrets and of_secrets.key_id,
        asked_by=account.asked_so_far,
        after=OPENED_AFTER,
    )
    return sum(one is not None for one in (of_key, of_secrets))


async def wait_until_they_may_go(source: Side, target: Side, merchant_id: int, waits: Waits = unheard) -> None:
    """Wait until the merchant's accounts may serve in the other cell, and nobody reads them here;
    the merchant goes on meanwhile. Raises: Conflict if they are read for very long.
    """
    left = await _seconds_left(source, target, merchant_id)
    if left is not None and left > 0:
        with waits(Wait.opened, left):
            while left is not None and left > 0:
                await asyncio.sleep(min(left, 1.0))
                left = await _seconds_left(source, target, merchant_id)
    if not await nobody_reads(source, merchant_id, within=READ_FOR, waits=waits):
        raise Conflict(IS_READ)


async def nobody_reads(source: Side, merchant_id: int, *, within: float, waits: Waits = unheard) -> bool:
    """Whether readings of the merchant's accounts have come to their end within so many seconds."""

    async def are_read() -> int:
        return (await in_flight(source.database, merchant_id)).readings

    return not await wait_out(are_read, Wait.readings, seconds=within, pause=_PAUSE, waits=waits)


async def require_that_they_serve(source: Side, target: Side, merchant_id: int) -> None:
    """Make sure that the merchant would be served by its own accounts there, once nobody adds any.

    Raises: Conflict.
    """
    left = await _seconds_left(source, target, merchant_id)
    if left is None or left > 0:
        raise Conflict(
            f"an account of merchant {merchant_id} was added meanwhile, and does not serve in the other cell yet: "
            "the merchant goes on here; run the same command again"
        )


async def _seconds_left(source: Side, target: Side, merchant_id: int) -> float | None:
    ids = [one.id for one in await own_accounts(source.database, merchant_id) if one.is_asked]
    left: float | None = await queries.seconds_until_they_serve(target.database, ids=ids)
    return left


async def leave_accounts(connection: Connection, merchant_id: int, *, cell: int, has_come: bool = True) -> None:
    """Give the merchant's accounts up: they are the other cell's, to which it went, or where it is
    as it has not come here (`has_come`).

    They can't be added here meanwhile, and nobody here misses them.
    """
    why = f"it went to cell {cell}" if has_come else "the move of its merchant here was cancelled"
    await _settle_told(connection, merchant_id, why)
    await queries.leave(connection, merchant_id=merchant_id, because=why, moved_to=cell)


async def _settle_told(connection: Connection, merchant_id: int, why: str) -> None:
    kinds = [str(one) for one in ABOUT_ACCOUNTS]
    await queries.settle_told(connection, merchant_id=merchant_id, because=why, kinds=kinds)


@dataclass(frozen=True, slots=True)
class _InTheWay:
    name: str
    what: str
    other: str


@dataclass(frozen=True, slots=True)
class _Named:
    """An account by what both cells know it: its acquirer's own word, or the print of its key."""

    name: str
    own_id: str
    key_print: bytes | None = field(repr=False)

    def is_same(self, other: _Named | None) -> bool:
        """Whether the other cell's account of this name is this one."""
        if other is None:
            return False
        if self.own_id or other.own_id:
            return self.own_id == other.own_id
        return self.key_print is not None and self.key_print == other.key_print


@dataclass(frozen=True, slots=True)
class _RuleId:
    id: int


async def reasons_of_accounts(
    source: Side, target: Side, merchant_id: int, own: Sequence[OwnAccount], *, serves_live: bool
) -> list[str]:
    """Why the merchant's own accounts, and rules for them, can't go, in words."""
    reasons = [_said(one) for one in await _in_the_way(target, own)]
    if not serves_live and any(one.live for one in own):
        reasons.append("the other cell takes no live payments: set PAYDESK_LIVE_ACQUIRER there first")
    for_all = await records_of(_RuleId, queries.rules_of_all(source.database, merchant_id=merchant_id))
    if for_all:
        numbers = ", ".join(str(one.id) for one in for_all)
        reasons.append(
            f"rules that are not its own name its account ({numbers}): remove them (paydesk acquirer rule-remove), and "
            "add them for this merchant"
        )
    if unknown := await _unknown_there(source, target, merchant_id):
        reasons.append(
            f"its rules name accounts that the other cell does not have ({', '.join(unknown)}): remove these rules "
            "(paydesk acquirer rule-remove), or add the accounts there"
        )
    if differences := await queries.open_differences(source.database, merchant_id=merchant_id):
        reasons.append(
            f"{differences} differences between its account and our books are open: settle or accept them first "
            "(paydesk alarm list --kind not_reconciled)"
        )
    return reasons


async def _in_the_way(target: Side, own: Sequence[OwnAccount]) -> list[_InTheWay]:
    asked = queries.in_the_way(
        target.database,
        ids=[one.id for one in own],
        names=[one.name for one in own],
        kinds=[one.kind for one in own],
        prints=[one.key_print for one in own],
        own_ids=[one.own_id for one in own],
    )
    return await records_of(_InTheWay, asked)


def _said(one: _InTheWay) -> str:
    if one.what == "name":
        return (
            f'the other cell has, or had, another account called "{one.name}", and what was taken there is called by '
            "that name: the merchant can only go to a cell where it is free"
        )
    return (
        f'the other cell asks the account "{one.name}" as "{one.other}" already: an acquirer\'s account is one account '
        "there; give the merchant one of its own, or let it go to another cell"
    )


async def _unknown_there(source: Side, target: Side, merchant_id: int) -> list[str]:
    """Accounts that the merchant's rules name, and the other cell does not know as the same."""
    named = await records_of(_Named, queries.named_by_rules(source.database, merchant_id=merchant_id))
    there = {
        one.name: one
        for one in await records_of(_Named, queries.known_alike(target.database, names=[one.name for one in named]))
    }
    return [one.name for one in named if one.name != _FOR_TESTS and not one.is_same(there.get(one.name))]
