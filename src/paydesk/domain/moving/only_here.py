"""What of a merchant who is in both cells only the copy here knows: rows that the other cell does
not have, or in which something came to pass that did not there.

A copy that came back from before knows nothing but what the other cell knows, too, or has left
behind: of that its rows say less, never more. Numbers are given out twice after such a return, so
that a row is the other cell's if also what never changes of it is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, TypeAlias

from paydesk.database.durability import ConfirmedConnection
from paydesk.database.pool import AWAY
from paydesk.domain.moving.copying import PATIENCE, Pair, Side, names_of_accounts, queries, stream
from paydesk.domain.moving.passes import in_words
from paydesk.domain.moving.tables import theirs

Comparing: TypeAlias = Callable[[], AbstractContextManager[Callable[[], None]]]
"""What hears of each table that is compared, by calls of what it gives for the comparison's
length.
"""


def uncompared() -> AbstractContextManager[Callable[[], None]]:
    """Nobody hears of it."""
    return nullcontext(lambda: None)


FIRST = 5
"""How many rows of a table are named."""

_ENDED = "case when t.finished_at is not null then 1 end"


@dataclass(frozen=True, slots=True)
class Compared:
    """How rows `t` of a table are compared, in SQL.

    A row has a `key` in both cells, what never changes of it (`same`), what comes to pass `once`,
    and what `grows`; where both are of one `version`, both have one `state`. People see it as
    `shown`. Where somebody takes rows away in good order, those that were `made` before the newest
    that is in both are missed by nobody; nor are those that are not `live`, where the test side was
    emptied. `of` is the table, and others that are read with it.
    """

    same: str = "t.created_at"
    key: str = "t.id"
    shown: str = "t.id"
    once: Sequence[str] = ()
    grows: Sequence[str] = ()
    version: str = "null"
    state: str = "null"
    made: str = "null"
    live: str = "t.live"
    of: str = ""

    @property
    def facts(self) -> str:
        """What a row comes to, as both cells put it."""
        once = ", ".join(f"{one} is not null" for one in self.once)
        return (
            f"row({self.key})::text as key, row({self.same})::text as same, array[{once}]::boolean[] as once, "
            f"array[{', '.join(self.grows)}]::numeric[] as grows, ({self.version})::text as version, "
            f"({self.state})::text as state"
        )


_PERFORMED = Compared(same="t.created_at, t.idempotency_key", version=_ENDED, state="t.state", once=("t.finished_at",))
_MADE = Compared()
_OF_BOTH_SIDES = "true"
_SET = Compared(
    key="t.merchant_id",
    shown="t.merchant_id",
    same="",
    grows=("extract(epoch from t.changed_at)",),
    live=_OF_BOTH_SIDES,
)

COMPARED: Final = {
    # A refund that fails, and a dispute that is won, take back what was refunded and charged back.
    "payment": Compared(
        once=("t.paid_at", "t.captured_at"),
        grows=("t.revision",),
        version="t.revision",
        state="row(t.state, t.refunded, t.charged_back)",
    ),
    # What was given up, and approved late, is undone.
    "payment_attempt": Compared(
        same="t.created_at, t.idempotency_key",
        once=("t.finished_at", "case when t.state in ('voiding', 'voided') then 1 end"),
        version="case when t.finished_at is not null and t.state not in ('voiding', 'voided') then 1 end",
        state="t.state",
    ),
    # A refund that was made may fail later.
    "movement": Compared(
        same="t.created_at, t.idempotency_key",
        once=("t.finished_at", "t.failed_at"),
        version="case when t.finished_at is not null and t.failed_at is null then 1 end",
        state="t.state",
    ),
    "subscription": Compared(
        once=("t.date_active", "t.date_paid", "t.date_cancelled", "t.date_stopped", "t.date_expired"),
        grows=("t.revision",),
        version="t.revision",
        state="t.state",
    ),
    # Each cell books a dispute that it reads by a number of its own; how it stands, which
    # banks decide anew, acquirers tell the other cell, too.
    "chargeback": Compared(
        key="t.live, t.payment_id, t.acquirer, coalesce(nullif(t.acquirer_reference, ''), t.id::text)",
        same="t.currency",
        once=("t.evidence_at",),
        grows=("t.takes", "t.returns"),
    ),
    "payout": Compared(same="t.at, t.currency, t.amount"),
    # What falls due is booked in each cell alike, by whoever works there.
    "ledger_posting": Compared(
        key=(
            "t.live, t.payment_id, t.payout_id, t.kind, t.currency, t.acquirer, t.pending, t.available, t.reserve, "
            "t.fees, t.bank, case when t.payment_id is null and t.payout_id is null then t.at end"
        ),
        same="",
    ),
    "purchase_given_back": Compared(
        key="t.acquirer, t.idempotency_key",
        shown="t.idempotency_key",
        once=("t.finished_at",),
        version=_ENDED,
        state="t.state",
        live=_OF_BOTH_SIDES,
    ),
    "instrument_charge": Compared(key="t.attempt_id", shown="t.attempt_id"),
    "card": _MADE,
    "card_change": _PERFORMED,
    "customer": Compared(once=("t.erased_at",)),
    # Who is erased gets another seed.
    "shopper": Compared(
        same="", once=("t.erased_at",), version="case when t.erased_at is null then 1 end", state="t.seed"
    ),
    "saved_instrument": Compared(once=("t.removed_at", "t.charge_revoked_at")),
    "subscription_change": Compared(once=("t.finished_at",), version=_ENDED, state="t.state"),
    "subscription_difference": Compared(
        key="t.attempt_id",
        shown="t.attempt_id",
        same="t.at",
        once=("t.finished_at",),
        version=_ENDED,
        state="t.state",
    ),
    "subscription_item": Compared(once=("t.taken_back_at",)),
    "subscription_proration": Compared(key="t.subscription_id, t.change_id", shown="t.subscription_id", same="t.at"),
    "subscription_package": _MADE,
    "package_version": _MADE,
    "package_move": Compared(once=("t.finished_at",)),
    # Of what came to pass in both cells both tell.
    "pingback": Compared(key="t.live, t.event, t.payment_id, t.subscription_id", same=""),
    "delivery": _MADE,
    "evidence_file": _MADE,
    "coupon": _MADE,
    "payment_link": Compared(grows=("extract(epoch from t.changed_at)",)),
    "merchant": Compared(once=("t.went_live_at",), grows=("t.test_generation",), live=_OF_BOTH_SIDES),
    "merchant_key": Compared(once=("t.valid_until",), live=_OF_BOTH_SIDES),
    "branding": _SET,
    "business_profile": _SET,
    "profile_change": Compared(same="t.proposed_at", once=("t.decided_at",), live=_OF_BOTH_SIDES),
    "invitation": Compared(
        same="t.email",
        once=("t.accepted_at",),
        grows=("extract(epoch from t.created_at)",),
        made="t.created_at",
        live=_OF_BOTH_SIDES,
    ),
    "membership": Compared(
        key="t.created_at",
        same="",
        shown="p.email",
        made="t.created_at",
        live=_OF_BOTH_SIDES,
        of="membership t join person p on p.id = t.person_id",
    ),
    # Which of two keys is the newer one nobody knows.
    "acquirer_account": Compared(
        key="t.name", shown="t.name", version="1", state="encode(t.key_print, 'hex')", live=_OF_BOTH_SIDES
    ),
    "acquirer_rule": Compared(made="t.created_at", live=_OF_BOTH_SIDES),
    # Who suspends the copy does what is to be done with it.
    "audit_entry": Compared(
        key="t.id, t.at",
        same="t.action",
        made="t.at",
        live=_OF_BOTH_SIDES,
        of="(select * from audit_entry where action not in ('merchant_suspended', 'merchant_resumed')) t",
    ),
}
"""How the tables of a merchant's rows are compared, money first."""

_BY_PAYMENTS = "it goes with a payment, or another row that is compared"
_BY_ACQUIRERS = "an acquirer tells it the other cell, too"
_KEPT_SUM = "a sum, or a place, of other rows"
_OF_A_MOMENT = "it counts for a moment, or can be had anew"

LEFT_OUT: Final = {
    **dict.fromkeys(("checkout", "coupon_use", "hosted_page", "mail", "payment_link_sale"), _BY_PAYMENTS),
    **dict.fromkeys(("api_call", "kept_release", "pingback_attempt"), _BY_PAYMENTS),
    **dict.fromkeys(("acquirer_own_id", "balance_line", "balance_reading", "bank_payout"), _BY_ACQUIRERS),
    **dict.fromkeys(("dispute_reading", "dispute_waiting", "failed_refund_reading"), _BY_ACQUIRERS),
    **dict.fromkeys(("failed_refund_waiting", "operator_entry", "proceeds_finding"), _BY_ACQUIRERS),
    "reconciliation": _BY_ACQUIRERS,
    **dict.fromkeys(("card_expiry", "ledger_entry_before", "mail_place", "mrr_day", "mrr_movement"), _KEPT_SUM),
    **dict.fromkeys(("refund_day", "reserve_change", "reserve_due"), _KEPT_SUM),
    **dict.fromkeys(("alarm", "card_guard_minute", "card_try", "ignored_field", "item_picture"), _OF_A_MOMENT),
    **dict.fromkeys(("picture_source", "rejected_form", "shopper_code", "shopper_session"), _OF_A_MOMENT),
    **dict.fromkeys(("acquirer_fee", "card_guard", "fee_amount", "fee_plan"), "the audit log tells who set it"),
    "forgotten_attempt": "it stays here",
}
"""What is not compared, and why nobody misses it."""


@dataclass(frozen=True, slots=True)
class Alone:
    """What of a table only the copy here knows: how many rows, the first of them, and what all of
    them come to.
    """

    table: str
    rows: int
    first: Sequence[str]
    hash: str

    def __str__(self) -> str:
        more = ", …" if self.rows > len(self.first) else ""
        return f"{self.table}: {self.rows} ({', '.join(self.first)}{more})"


def code_of(found: Sequence[Alone]) -> str:
    """By what somebody who has seen these rows names them, and no others."""
    return sha256("\n".join(f"{one.table} {one.rows} {one.hash}" for one in found).encode()).hexdigest()[:12]


async def only_here(
    source: Side, target: Side, merchant_id: int, *, report: Callable[[], None] = lambda: None
) -> list[Alone]:
    """What of the merchant's, by table, the cell `source` knows and the cell `target` does not, as
    far as it is about money or people. `report` hears of each table. Changes nothing.

    What only an earlier state of a row here says is nothing that the other cell does not know.
    Raises: Unavailable if a database goes away.
    """
    try:
        return await _only_here(source, target, merchant_id, report)
    except (*AWAY, ExceptionGroup) as error:
        if said := in_words(error):
            raise said from error
        raise


async def _only_here(source: Side, target: Side, merchant_id: int, report: Callable[[], None]) -> list[Alone]:
    async with (
        source.database.acquire() as here,
        target.database.acquire() as there,
        here.transaction(isolation="repeatable_read"),
        there.transaction(isolation="repeatable_read", readonly=True),
    ):
        for each in (here, there):
            await each.execute("set local idle_in_transaction_session_timeout = 0")
        named = {name for each in (here, there) for name in await names_of_accounts(each, merchant_id)}
        # What is compared comes from there.
        pair = Pair(there, here, merchant_id, sorted(named))
        await here.execute(
            "create temporary table kept_there (key text, same text, once boolean[], grows numeric[], version text, "
            "state text) on commit drop"
        )
        emptied = await _test_sides(there, merchant_id) > await _test_sides(here, merchant_id)
        found = []
        for table, compared in COMPARED.items():
            if pair.has(table) and (alone := await _alone(pair, here, table, compared, emptied)).rows:
                found.append(alone)
            report()
    return found


async def _test_sides(connection: ConfirmedConnection, merchant_id: int) -> int:
    """How often a merchant's test side was begun, as far as a cell knows."""
    return int(await queries.test_generation(connection, merchant_id=merchant_id) or 0)


async def _alone(
    pair: Pair, here: ConfirmedConnection, table: str, compared: Compared, test_side_was_emptied: bool
) -> Alone:
    of, owner = compared.of or f"{table} t", pair.owner(table)
    await here.execute("truncate kept_there", timeout=PATIENCE)
    distinct = "" if compared.key == "t.id" else "distinct"
    asked = f"select {distinct} {compared.facts} from {of} where {theirs(table)}"  # noqa: S608
    await stream(pair, asked, [owner], "kept_there", ["key", "same", "once", "grows", "version", "state"])
    await here.execute("analyze kept_there", timeout=PATIENCE)
    row: Any = await here.fetchrow(_difference(table, compared, of), owner, test_side_was_emptied, timeout=PATIENCE)
    return Alone(*row)


def _difference(table: str, compared: Compared, of: str) -> str:
    """The question for what is here and not there; $1 is whose it is, $2 whether the test side was
    emptied there, and there is `kept_there`.
    """
    return f"""
        with ours as (
            select {compared.facts}, ({compared.shown})::text as shown, ({compared.made})::timestamptz as made,
                   {compared.live} as live
              from {of}
             where {theirs(table)}
        ), beside as (
            select o.*, k.key is not null as is_there, k.same as same_there, k.once as once_there,
                   k.grows as grows_there, k.version as version_there, k.state as state_there
              from ours o
              left join kept_there k on k.key = o.key
        ), newest as (
            select max(made) as made from beside where is_there and same = same_there
        )
        select '{table}' as table, count(*) as rows,
               coalesce((array_agg(b.shown order by length(b.shown), b.shown))[1:{FIRST}], '{{}}') as first,
               coalesce(sum(hashtextextended(
                   row(b.key, b.same, b.once, b.grows, b.version, b.state)::text, 0)::numeric), 0)::text as hash
          from beside b
         cross join newest n
         where not b.is_there and (b.made <= n.made) is not true and (b.live or not $2)
            or b.same <> b.same_there
            or exists (select from unnest(b.once, b.once_there) as o (here, there) where o.here and not o.there)
            or b.is_there
               and exists (select from unnest(b.grows, b.grows_there) as g (here, there)
                            where g.here > g.there or g.here is not null and g.there is null)
            or b.version = b.version_there and b.state is distinct from b.state_there
    """  # noqa: S608
