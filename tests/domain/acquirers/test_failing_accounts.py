"""Routing under a dead, a slow and a lying account while many customers pay: nobody is charged
twice, and nothing that was taken is lost.

Each account is a simulated bank with a record of its own, and these records say what is true.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.banks import answering, ending_in
from tests.domain.acquirers.test_choosing import Accounts, accounts, database, database_url
from tests.lengths import at_length, longer
from tests.proving import check
from tests.standings import standings

from paydesk.adapters.acquirers.interface import (
    Acquirer,
    Declined,
    DeclineReason,
    NothingBegun,
    Outcome,
    OutcomeUnknown,
)
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import SimulatedAcquirer
from paydesk.core.clock import utc_now
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.acquirers.health import list_out_of_turn
from paydesk.domain.acquirers.routing import Rule
from paydesk.domain.operations.acquirer_rules import add_rule
from paydesk.domain.operations.reconciling import reconcile
from paydesk.domain.payments.results import Paid, Refused, Unsettled

__all__ = ["accounts", "database", "database_url"]

SHARES = {"dead": 25, "slow": 33, "lying": 50}
"""Of the orders that the accounts before left over: a quarter goes to each, and to the last one."""
PRESSES = 3
"""How often a customer presses who is told that it did not go."""

Decide = Callable[[Purchase], Awaitable[Outcome]]


def slow(honest: Acquirer) -> Decide:
    """Takes the money, and answers every other customer only when nobody waits any more."""
    turns = itertools.count()

    async def authorize(purchase: Purchase) -> Outcome:
        answer = await honest.authorize(purchase)
        if next(turns) % 2:
            raise OutcomeUnknown("no answer in time")
        return answer

    return authorize


def lying(honest: Acquirer) -> Decide:
    """Takes the money and says that the card was declined, takes another amount than it says, loses
    the answer; and is honest each fourth time.
    """
    turns = itertools.count()

    async def authorize(purchase: Purchase) -> Outcome:
        match next(turns) % 4:
            case 0:
                await honest.authorize(purchase)
                return Declined(DeclineReason.DECLINED)
            case 1:
                return await honest.authorize(replace(purchase, amount=purchase.amount + 1))
            case 2:
                await honest.authorize(purchase)
                raise OutcomeUnknown("the answer was lost")
        return await honest.authorize(purchase)

    return authorize


async def stand(accounts: Accounts) -> None:
    """Add the accounts, which share the orders, and spoil their banks."""
    till = accounts.till
    for name, share in SHARES.items():
        await accounts.add(name)
        rule = Rule(0, name, None, "", "", "", None, None, share)
        await add_rule(till.database, COMMAND_LINE, rule, set(till.desk.acquirers), now=utc_now())
    rest = Rule(0, "simulator", None, "", "", "", None, None, 100)
    await add_rule(till.database, COMMAND_LINE, rest, set(till.desk.acquirers), now=utc_now())
    banks = {name: SimulatedAcquirer(accounts.banks[name], base_url="http://pay.test") for name in SHARES}
    refused = ending_in(NothingBegun("connection refused"))
    accounts.spoilt["dead"] = answering(banks["dead"], authorize=refused, list_purchases=refused)
    accounts.spoilt["slow"] = answering(banks["slow"], authorize=slow(banks["slow"]))
    accounts.spoilt["lying"] = answering(banks["lying"], authorize=lying(banks["lying"]))


async def come(accounts: Accounts, order: str) -> str:
    """A customer who pays an order, and presses again as long as they are told that it did not go;
    what they know when they leave.
    """
    link = await accounts.till.order(order)
    for _ in range(PRESSES):
        told = await accounts.till.pay(link, address=f"192.0.2.{len(order) % 200}")
        if isinstance(told, Paid | Unsettled):
            return type(told).__name__
        assert isinstance(told, Refused)
    return "Refused"


async def work(accounts: Accounts) -> None:
    """What workers do meanwhile and afterwards: outcomes are found, lists compared, what is paid
    twice given back, and an operator settles what is named.
    """
    till = accounts.till
    await till.settle_all(minutes=2)
    accounts.spoilt.clear()
    await till.settle_all(minutes=20)
    since, now = utc_now() - timedelta(days=1), utc_now() + timedelta(minutes=10)
    for name in till.desk.acquirers:
        await reconcile(till.desk, name, since=since, now=now, fix=True)


async def kept(accounts: Accounts) -> dict[str, list[tuple[str, str, Decimal]]]:
    """What each order's customer has paid and not got back, by the banks' own records: account, key
    and sum.
    """
    rows = await accounts.till.database.fetch(
        "select p.merchant_order_id, a.idempotency_key from payment p join payment_attempt a"
        " on a.merchant_id = p.merchant_id and a.payment_id = p.id"
    )
    order_of = {row["idempotency_key"]: row["merchant_order_id"] for row in rows}
    found = defaultdict(list)
    for name, bank in accounts.banks.items():
        for key, one in standings(bank.record.operations()).items():
            if one.net:
                found[order_of[key]].append((name, key, one.net))
    return found


async def named(accounts: Accounts) -> set[str]:
    """What an operator is told of, since an account's list says other than our books."""
    rows = await accounts.till.database.fetch(
        "select subject from alarm where kind = 'not_reconciled' and settled_at is null"
    )
    return {row["subject"] for row in rows}


async def approved(accounts: Accounts) -> dict[str, Decimal]:
    """What our books say was taken, by the key that it was asked under."""
    rows = await accounts.till.database.fetch(
        "select idempotency_key, amount from payment_attempt where state = 'approved'"
    )
    return {row["idempotency_key"]: row["amount"] for row in rows}


async def undo_strays(accounts: Accounts, paid: dict[str, list[tuple[str, str, Decimal]]]) -> None:
    """An operator who was told of it gives back what an account took and denied, at the account
    itself.
    """
    books = await approved(accounts)
    for name, key, _ in [one for several in paid.values() for one in several if one[1] not in books]:
        await accounts.till.desk.acquirers[name].undo(f"{key}:void", key)


@longer
async def test_nobody_is_charged_twice_and_nothing_is_lost_whatever_accounts_do(
    accounts: Accounts, capfd: pytest.CaptureFixture[str]
) -> None:
    await stand(accounts)
    till, customers = accounts.till, at_length(500, 20)
    told: Counter[str] = Counter()
    for begin in range(0, customers, 10):
        crowd = [come(accounts, f"order-{n}") for n in range(begin, min(begin + 10, customers))]
        told.update(await asyncio.gather(*crowd))
        await till.desk.health.look(till.database)
    out = {one.account for one in await list_out_of_turn(till.database)}
    await work(accounts)

    paid, books = await kept(accounts), await approved(accounts)
    assert not any(len({name for name, _, _ in several}) > 1 for several in paid.values()), "never at two accounts"
    everything = [one for several in paid.values() for one in several]
    wrong = {f"purchase {key} at {name}" for name, key, taken in everything if books.get(key) != taken}
    assert {subject.rsplit(" ", 1)[1] for subject in wrong} <= {"lying"}, "honest accounts take what we know of"
    assert await named(accounts) == wrong, "each lie is named to the operator, and nothing else"
    assert set(books) <= {key for _, key, _ in everything}, "what our books say was paid is at the bank"
    assert not accounts.taken("dead")

    await undo_strays(accounts, paid)
    after = await kept(accounts)
    assert all(len(several) == 1 for several in after.values()), "nobody has paid twice"
    assert {key for several in after.values() for _, key, _ in several} == set(books), "nothing is lost"
    found = await check(till.database, now=utc_now(), merchant_id=till.shop.merchant_id)
    assert [one.rule.statement for one in found if one.found] == []
    assert "dead" in out
    with capfd.disabled():
        print(f"\n{customers} customers: {len(books)} have paid, told at once {dict(told)}, out of turn {sorted(out)}")
