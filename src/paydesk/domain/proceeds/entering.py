"""Entering what an acquirer tells of its balance: each line and payout once, however often, in
whatever order and by how many it is told. Moves no money; merchants' balances stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from paydesk.adapters.acquirers.balance import Balance, BalanceLine, BankPayout
from paydesk.core.storable import storable_text
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.proceeds.findings import Finding, FindingKind

queries = load_statements(__package__ or "", "entering.sql")

_LONGEST = 200
"""Characters that are kept of an acquirer's names for things."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A line as it was told first."""

    id: str
    kind: str
    currency: str
    amount: Decimal
    fee: Decimal
    payout: str | None


@dataclass(frozen=True, slots=True)
class _KnownPayout:
    reference: str
    currency: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class _Entered:
    id: str


async def new_lines(
    database: Database, acquirer: str, lines: Sequence[BalanceLine], balance: Balance, *, tags: frozenset[str]
) -> tuple[list[BalanceLine], list[Finding]]:
    """The lines that are not entered yet, with our keys, and what is told otherwise of the others.

    `tags` are of what is ours: what another deployment made on the same account is not.

    Raises: AcquirerRefused, OutcomeUnknown.
    """
    told = {one.id: one for one in reversed(lines)}
    rows = queries.known_lines(database, acquirer=acquirer, lines=list(told))
    known = {one.id: one for one in await records_of(_Known, rows)}
    corrected = [
        Finding(FindingKind.CORRECTED, one.id, why, one.payout)
        for one in known.values()
        if (why := _otherwise(one, told[one.id]))
    ]
    fresh = [one for name, one in told.items() if name not in known]
    named = await balance.with_keys(fresh) if fresh else []
    return [replace(one, is_ours=False) if one.deployment not in ("", *tags) else one for one in named], corrected


def _otherwise(known: _Known, told: BalanceLine) -> str:
    """What a line that is told again says otherwise, empty if nothing."""
    before = (known.kind, known.currency, known.amount, known.fee)
    if before == (told.kind, told.currency, told.amount, told.fee):
        return ""
    return noted(
        "it was a %(kind)s of %(amount)s with a fee of %(fee)s %(currency)s, and is told now as a %(told_kind)s of "
        "%(told_amount)s with a fee of %(told_fee)s %(told_currency)s",
        kind=known.kind,
        amount=f"{known.amount:f}",
        fee=f"{known.fee:f}",
        currency=known.currency,
        told_kind=told.kind,
        told_amount=f"{told.amount:f}",
        told_fee=f"{told.fee:f}",
        told_currency=told.currency,
    )


async def enter_lines(database: Connection, acquirer: str, lines: Sequence[BalanceLine]) -> int:
    """Enter lines with their postings; returns how many of them were news. Moves no money.

    Args: database may be a connection in the transaction that moves the place in the list.
    """
    if not lines:
        return 0
    rows = queries.enter_lines(
        database,
        acquirer=acquirer,
        lines=[one.id for one in lines],
        kinds=[str(one.kind) for one in lines],
        types=[storable_text(one.type, longest=_LONGEST) for one in lines],
        ats=[one.at for one in lines],
        currencies=[one.currency for one in lines],
        amounts=[one.amount for one in lines],
        fees=[one.fee for one in lines],
        of_amounts=[one.of_amount for one in lines],
        of_currencies=[one.of_currency for one in lines],
        sources=[one.source for one in lines],
        purchases=[one.purchase for one in lines],
        keys=[storable_text(one.key, longest=_LONGEST) for one in lines],
        of_keys=[storable_text(one.of_key, longest=_LONGEST) for one in lines],
        ours=[one.is_ours for one in lines],
    )
    return len(await records_of(_Entered, rows))


async def enter_payouts(database: Connection, acquirer: str, payouts: Sequence[BankPayout]) -> list[Finding]:
    """Enter payouts as they stand now; returns what is told otherwise than before.
    Moves no money.

    Args: database is a connection in a transaction that nobody else enters payouts beside.
    """
    told = {one.reference: one for one in payouts}
    if not told:
        return []
    each = list(told.values())
    rows = queries.enter_payouts(
        database,
        acquirer=acquirer,
        payouts=list(told),
        ats=[one.at for one in each],
        currencies=[one.currency for one in each],
        amounts=[one.amount for one in each],
        states=[str(one.state) for one in each],
        traced=[one.is_traced for one in each],
        references=[storable_text(one.bank_reference, longest=_LONGEST) for one in each],
    )
    await records_of(_Entered, rows)
    entered = queries.payouts_named(database, acquirer=acquirer, payouts=list(told))
    return [
        Finding(
            FindingKind.CORRECTED,
            one.reference,
            noted(
                "it was of %(amount)s %(currency)s, and is told now as of %(now_amount)s %(now_currency)s",
                amount=f"{one.amount:f}",
                currency=one.currency,
                now_amount=f"{now.amount:f}",
                now_currency=now.currency,
            ),
            one.reference,
        )
        for one in await records_of(_KnownPayout, entered)
        if (one.amount, one.currency) != ((now := told[one.reference]).amount, now.currency)
    ]
