"""An operator's side of payouts: who has how much available, where it is sent, and what was sent
to all merchants.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from paydesk.adapters.vault import Vault
from paydesk.core.errors import Conflict, NotFound
from paydesk.core.paging import EARLIEST, LARGEST_ID, LATEST, Page, Place
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.business.profiles import bank_account_of
from paydesk.domain.ledger.payouts import Payout, Sent, record_payout_on, record_sent
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.domain.operations.payout_file_states import FileState

queries = load_statements(__package__ or "", "payouts.sql")
files = load_statements(__package__ or "", "payout_files.sql")

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Payable:
    """How much of a currency a merchant has available, in main units."""

    merchant_id: int
    merchant_name: str
    currency: str
    available: Decimal
    suspended: bool
    """Nothing is paid out until an operator lifts the suspension."""
    unaccepted: bool
    """Nothing is paid out until an operator has accepted the business profile,
    or says why all the same."""
    payouts_from: datetime | None
    """Until then nothing is paid out to the new bank account,
    unless an operator says why all the same."""

    @property
    def waits(self) -> bool:
        """Whether its bank account is a reason to pay nothing out for now."""
        return self.unaccepted or self.payouts_from is not None


@dataclass(frozen=True, slots=True)
class MadePayout:
    """A payout with its merchant; `recorded_by` is `person 5` or `command`,
    `at` is the shop's time (UTC).
    """

    id: int
    merchant_id: int
    merchant_name: str
    currency: str
    amount: Decimal
    reference: str
    recorded_by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class BankAccount:
    """Where a merchant's money is to be sent."""

    merchant_id: int
    holder: str
    iban: str = field(repr=False)

    @property
    def written(self) -> str:
        """The IBAN in groups of four, as banks print it."""
        return " ".join(self.iban[place : place + 4] for place in range(0, len(self.iban), 4))


async def payable(
    database: Database,
    *,
    live: bool,
    most: int,
    now: datetime,
    after: tuple[int, str] = (0, ""),
    merchant_id: int | None = None,
) -> list[Payable]:
    """Who has money available, by merchant and currency, after a place of that order;
    of one merchant if asked.
    """
    rows = queries.payable(
        database,
        live=live,
        merchant_id=merchant_id,
        after_merchant_id=after[0],
        after_currency=after[1],
        most=most,
        now=now,
    )
    return await records_of(Payable, rows)


async def payee_of(database: Database, shop: Shop, currency: str | None, *, now: datetime) -> Payable:
    """What a merchant has available of a currency, be it nothing, and what keeps it where it is.

    Without a currency it is the first that it has any of, its newest payout's, or the first that it
    ever had. `now` is real time (UTC).
    Raises: NotFound if there is no such merchant, or it never had any money.
    """
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    found = record_if_any(Payable, await queries.payee_of(database, **side, currency=currency, now=now))
    if found is None:
        raise NotFound(f"there is no merchant {shop.merchant_id}")
    if not found.currency:
        raise NotFound(f"merchant {shop.merchant_id} has had no money yet; say which currency, as ?currency=USD")
    return found


async def pay_out(
    database: Database, actor: Actor, shop: Shop, sent: Sent, *, now: datetime, by_file: int | None = None
) -> Payout:
    """Record that money was sent to a merchant, and who says so. Moves no money itself.

    `now` is real time (UTC), `by_file` the payout file that has sent it, if one has: its line is
    recorded together with the payout, and never of a file that is dropped. The line in the audit
    log is the operator's and stands in the merchant's too, with the reason for a payout that did
    not wait.

    Raises: as `record_payout_on`; Conflict if another file may have sent the merchant's money, or
        its own was dropped; Unsure if nobody can say whether it was recorded.
    """
    shop_now = await shop_time(database, shop, real_now=now)

    async def write(connection: Connection) -> Payout:
        payout = await record_payout_on(connection, shop, sent, now=shop_now)
        if by_file is not None:
            await _record_line(connection, shop, payout, by_file, now=now)
        if not payout.again:
            await _require_no_other_file(connection, shop, sent.currency, by_file)
            details: dict[str, object] = {
                "amount": str(sent.amount),
                "currency": sent.currency,
                "reference": payout.reference,
                **({"despite_wait": sent.despite_wait} if sent.despite_wait else {}),
            }
            subject = f"payout {payout.id}"
            await record(connection, actor, Action.payout_changed, now=now, shop=shop, subject=subject, details=details)
        return payout

    return await record_sent(database, write)


def was_dropped(file_id: int) -> Conflict:
    """Why nothing of a file is recorded any more."""
    return Conflict(worded("payout file %(id)s was dropped: record what was sent all the same one by one", id=file_id))


async def _record_line(connection: Connection, shop: Shop, payout: Payout, file_id: int, *, now: datetime) -> None:
    """A transfer of a file is recorded. Raises: Conflict."""
    if await files.hold_file(connection, file_id=file_id) == FileState.DROPPED:
        raise was_dropped(file_id)
    await files.recorded(connection, file_id=file_id, merchant_id=shop.merchant_id, payout_id=payout.id, now=now)


async def _require_no_other_file(connection: Connection, shop: Shop, currency: str, by_file: int | None) -> None:
    """Raises: Conflict."""
    file_id = await files.open_file_of(connection, merchant_id=shop.merchant_id, currency=currency)
    if shop.live and file_id is not None and file_id != by_file:
        raise Conflict(
            worded(
                "money of merchant %(merchant_id)s in %(currency)s is in payout file %(file_id)s: record "
                "that file, or drop it if it was not sent, at /operator/payouts/files",
                merchant_id=shop.merchant_id,
                currency=currency,
                file_id=file_id,
            )
        )


async def read_bank_account(
    database: Database, vault: Vault, actor: Actor, merchant_id: int, *, now: datetime
) -> BankAccount:
    """The account to pay a merchant out to, for an operator; the audit log keeps who read it.
    Moves no money.

    `now` is real time (UTC). The line in the log is the operator's and stands in the
    merchant's too.
    Raises: NotFound if there is no such merchant, or it has given no account.
    """
    holder, iban = await bank_account_of(database, vault, merchant_id)
    # Nobody reads it unless the log says so.
    async with database.acquire() as connection:
        await record(
            connection,
            actor,
            Action.bank_account_read,
            now=now,
            merchant_id=merchant_id,
            subject="bank account",
            details={"last4": iban[-4:]},
        )
    return BankAccount(merchant_id, holder, iban)


async def list_all_payouts(database: Database, page: Page, *, live: bool) -> list[MadePayout]:
    """A page of the payouts to all merchants, newest first."""
    rows = queries.payouts_of_all(database, live=live, **page.parameters())
    return await records_of(MadePayout, rows)


async def every_payout(
    database: Database, *, live: bool, since: datetime = EARLIEST, until: datetime = LATEST
) -> AsyncIterator[MadePayout]:
    """All payouts of a period, newest first, read in pages so that a slow reader holds
    no connection.
    """
    place = Place(LATEST, LARGEST_ID)
    while found := await list_all_payouts(database, Page(_BATCH, place, since, until), live=live):
        for one in found:
            yield one
        place = Place(found[-1].at, found[-1].id)
