from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests import breaking
from tests.domain.ledger.corruption import Corruption
from tests.proving import check

from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Record
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.ledger import checking
from paydesk.domain.ledger.checking import BANK_RULES, PAYMENT_RULES, RULES, BrokenRow, RuleResult, count_open
from paydesk.domain.payments.states import AttemptState, PaymentState

APPROVED = "4242424242424242"
DECLINED = "4000000000000002"
CHALLENGED = "4000000000003220"
ANSWER_LOST = "4000000000009987"


async def checked(till: Any, record: Record | None = None) -> dict[str, RuleResult]:
    """What each rule says of the till's merchant."""
    found = await check(
        till.database, now=utc_now(), merchant_id=till.shop.merchant_id, record=record or till.bank.record, most=20
    )
    return {finding.rule.statement: finding for finding in found}


def broken(found: dict[str, RuleResult]) -> set[str]:
    return {name for name, finding in found.items() if finding.found}


def rows(finding: RuleResult) -> set[tuple[str, int | str]]:
    return {(difference.table, difference.id) for difference in finding.differences}


async def test_a_database_with_payments_of_every_outcome_is_clean(empty: Database, open_till: Any) -> None:
    till = await open_till(empty)
    for number in (APPROVED, DECLINED, CHALLENGED, ANSWER_LOST):
        await till.pay(await till.order(), number)
    token = await till.order()
    for number in (DECLINED, CHALLENGED, APPROVED):
        await till.pay(token, number)
    found = await check(empty, now=utc_now(), record=till.bank.record)
    assert [finding.rule for finding in found] == [*RULES, *BANK_RULES]
    assert [finding.differences for finding in found] == [()] * len(found)
    states = {row["state"] for row in await empty.fetch("select distinct state from payment")}
    assert states == {"captured", "declined", "challenged", "processing"}
    assert await count_open(empty) == 2


async def test_an_empty_database_is_clean(empty: Database) -> None:
    assert not any(finding.found for finding in await check(empty, now=utc_now()))


EXTRA_ENTRIES = """
insert into ledger_entry (merchant_id, live, posting_id, kind, payment_id, account, currency, amount, at)
select p.merchant_id, {live}, {posting}, 'capture', p.id, e.account, p.currency, e.amount, now()
  from payment p cross join lateral (values ('acquirer', p.amount), ('pending', -p.amount)) as e (account, amount)
 where p.merchant_id = $1
"""
PINGBACK = """
insert into pingback (merchant_id, live, event, payment_id, url, sign_version, key_id, format, payload, state, due_at,
                      created_at)
select merchant_id, live, 'payment', id, 'https://shop.example', 'v2', key_id, 'json', '{}', 'due', now(), now()
  from payment
 where merchant_id = $1
"""
ANSWERED = """
with told as (
    update pingback set state = 'acknowledged', attempts = 1, finished_at = now() where merchant_id = $1 returning *
)
insert into pingback_attempt (merchant_id, live, pingback_id, number, at, url, request_headers, request_body, status,
                              response_body, duration_ms)
select merchant_id, live, id, 1, now(), 'https://shop.example', '{}', '{}', STATUS, 'BODY', 1 from told
"""

LEDGER = (
    Corruption(
        "postings_balance",
        "ledger_entry",
        "insert into ledger_posting (merchant_id, live, posting_id, kind, payment_id, currency, acquirer, at)"
        " select merchant_id, live, nextval('ledger_posting_id_seq'), 'refund', id, currency, -amount, now()"
        "   from payment where merchant_id = $1 returning id",
    ),
    Corruption("payments_posted", "payment", "delete from ledger_entry where merchant_id = $1 returning payment_id"),
    Corruption(
        "payments_posted",
        "payment",
        EXTRA_ENTRIES.format(live="live", posting="nextval('ledger_posting_id_seq')") + "returning payment_id",
    ),
    Corruption(
        "payments_posted",
        "payment",
        EXTRA_ENTRIES.format(live="live", posting="0") + "returning payment_id",
        after=DECLINED,
    ),
    Corruption(
        "payments_posted",
        "payment",
        "update payment set net = net + 1, reserve = reserve - 1 where merchant_id = $1 returning id",
    ),
    Corruption("payments_posted", "payment", "update payment set currency = 'EUR' where merchant_id = $1 returning id"),
    Corruption("amounts_split", "payment", "update payment set fees = fees + 1 where merchant_id = $1 returning id"),
    Corruption("amounts_split", "payment", "update payment set paid_at = null where merchant_id = $1 returning id"),
    Corruption("amounts_split", "payment", "update payment set net = 1 where merchant_id = $1 returning id", DECLINED),
)
ATTEMPTS = (
    Corruption(
        "attempts_agree", "payment", "update payment set attempt_id = 0 where merchant_id = $1 returning id", CHALLENGED
    ),
    Corruption(
        "attempts_agree",
        "payment",
        "update payment_attempt set state = 'declined' where merchant_id = $1 returning payment_id",
    ),
    Corruption(
        "attempts_agree", "payment", "update payment set state = 'challenged' where merchant_id = $1 returning id"
    ),
    Corruption(
        "approved_once",
        "payment_attempt",
        "insert into payment_attempt (merchant_id, live, payment_id, state, idempotency_key, acquirer, capture, amount,"
        " currency, card_id, client_address, not_after, created_at)"
        " select merchant_id, live, payment_id, state, 'another', acquirer, capture, amount, currency, card_id,"
        " client_address, not_after, created_at from payment_attempt where merchant_id = $1 returning id",
    ),
    Corruption(
        "approved_amounts",
        "payment_attempt",
        "update payment_attempt set amount = amount + 1 where merchant_id = $1 returning id",
    ),
    Corruption(
        "approved_amounts",
        "payment_attempt",
        "update payment_attempt set currency = 'EUR' where merchant_id = $1 returning id",
    ),
    Corruption(
        "outcomes_known",
        "payment_attempt",
        "update payment_attempt set created_at = created_at - interval '25 hours' where merchant_id = $1 returning id",
        ANSWER_LOST,
    ),
    Corruption(
        "outcomes_known",
        "payment_attempt",
        "update payment_attempt set lookup_at = null where merchant_id = $1 returning id",
        CHALLENGED,
    ),
)
PINGBACKS = (
    Corruption("payments_reported", "payment", "delete from pingback where merchant_id = $1 returning payment_id"),
    Corruption("payments_reported", "payment", PINGBACK + "returning payment_id", DECLINED),
    Corruption(
        "payments_reported", "pingback", "update pingback set payment_id = null where merchant_id = $1 returning id"
    ),
    Corruption("pingbacks_follow", "pingback", "update pingback set attempts = 2 where merchant_id = $1 returning id"),
    Corruption(
        "pingbacks_follow",
        "pingback",
        "update pingback set state = 'acknowledged', finished_at = now() where merchant_id = $1 returning id",
    ),
    Corruption(
        "pingbacks_follow",
        "pingback",
        ANSWERED.replace("STATUS", "200").replace("BODY", "NOK") + "returning pingback_id",
    ),
    Corruption(
        "pingbacks_follow",
        "pingback",
        ANSWERED.replace("STATUS", "500").replace("BODY", "ok") + "returning pingback_id",
    ),
    Corruption(
        "pingbacks_follow",
        "pingback",
        "update pingback set state = 'exhausted', finished_at = now() where merchant_id = $1 returning id",
    ),
)
MODES = (
    *(
        Corruption("modes_apart", table, f"update {table} set live = not live where merchant_id = $1 returning id")
        for table in ("payment_attempt", "pingback", "customer", "card", "checkout")
    ),
    Corruption("modes_apart", "ledger_entry", EXTRA_ENTRIES.format(live="true", posting="0") + "returning id"),
    Corruption(
        "modes_apart",
        "pingback_attempt",
        ANSWERED.replace("merchant_id, live, id", "merchant_id, not live, id") + "returning id",
    ),
)
PARENTS = (
    *(
        Corruption(
            "parents_exist",
            table,
            f"update {table} set {parent}_id = 0 where merchant_id = $1 returning id",
        )
        for table, parent in (
            ("payment", "customer"),
            ("payment", "card"),
            ("payment_attempt", "payment"),
            ("payment_attempt", "card"),
            ("pingback", "payment"),
            ("pingback", "subscription"),
            ("checkout", "key"),
        )
    ),
    *(
        Corruption(
            "parents_exist",
            "payment",
            f"with strayed as (update {people} set payment_id = 0 where merchant_id = $1)"
            " select id from payment where merchant_id = $1",
        )
        for people in ("customer", "card")
    ),
    Corruption(
        "parents_exist",
        "ledger_entry",
        "delete from payment where merchant_id = $1"
        " returning (select min(id) from ledger_entry where merchant_id = $1)",
    ),
)


@pytest.mark.parametrize(
    "corruption", [*LEDGER, *ATTEMPTS, *PINGBACKS, *MODES, *PARENTS], ids=lambda it: f"{it.rule}-{it.table}"
)
async def test_a_corrupted_row_is_named_by_its_rule(till: Any, corruption: Corruption) -> None:
    await till.pay(await till.order(), corruption.after or APPROVED)
    assert not broken(await checked(till))
    sql = corruption.sql.replace("STATUS", "200").replace("BODY", "ok")
    named = await till.database.fetchval(sql, till.shop.merchant_id)
    finding = (await checked(till))[corruption.rule]
    assert (corruption.table, named) in rows(finding)
    assert {difference.merchant_id for difference in finding.differences} == {till.shop.merchant_id}


@pytest.mark.parametrize("table", ["customer", "card"])
async def test_whoever_belongs_to_no_merchant_is_named(empty: Database, table: str) -> None:
    named = await breaking.leave_without_merchant(empty, table)
    found = await check(empty, now=utc_now())
    assert {finding.rule.statement: rows(finding) for finding in found if finding.found} == {
        "parents_exist": {(table, named)}
    }


def test_every_rule_is_seen_to_fail() -> None:
    tried = {corruption.rule for corruption in (*LEDGER, *ATTEMPTS, *PINGBACKS, *MODES, *PARENTS)}
    assert tried == {rule.statement for rule in PAYMENT_RULES}


async def test_a_difference_says_in_words_what_is_wrong(till: Any) -> None:
    await till.sell()
    payment_id = await till.database.fetchval(
        "update payment set state = 'declined' where merchant_id = $1 returning id", till.shop.merchant_id
    )
    found = await checked(till)
    assert found["attempts_agree"].differences[0].detail.startswith("is declined, but its attempt ")
    assert found["payments_posted"].differences == (
        BrokenRow("payment", till.shop.merchant_id, payment_id, "is declined, but has a capture posting"),
    )


async def test_a_live_attempt_at_the_simulated_bank_is_named(till: Any) -> None:
    await till.sell()
    for table in ("payment", "payment_attempt", "pingback", "customer", "card", "checkout"):
        await till.database.execute(f"update {table} set live = true where merchant_id = $1", till.shop.merchant_id)
    details = {difference.detail for difference in (await checked(till))["modes_apart"].differences}
    assert "is live, but was made at the simulated bank" in details


async def test_another_merchants_difference_is_not_told_when_one_is_asked_for(
    till: Any, open_till: Any, corruptible: Database
) -> None:
    other = await open_till(corruptible)
    await other.sell()
    await corruptible.execute("delete from ledger_entry where merchant_id = $1", other.shop.merchant_id)
    assert not broken(await checked(till))
    assert broken(await checked(other)) == {"payments_posted", "funds_agree"}


async def test_only_the_first_differences_are_kept_but_all_are_counted(till: Any) -> None:
    for _ in range(3):
        await till.sell()
    await till.database.execute("delete from ledger_entry where merchant_id = $1", till.shop.merchant_id)
    found = await check(till.database, now=utc_now(), merchant_id=till.shop.merchant_id, most=2)
    finding = next(finding for finding in found if finding.rule.statement == "payments_posted")
    assert (finding.found, len(finding.differences)) == (3, 2)


async def test_a_pingback_whose_attempts_were_forgotten_is_not_judged(till: Any) -> None:
    await till.sell()
    await till.database.execute(
        "update pingback set attempts = 1, state = 'acknowledged', finished_at = now(),"
        " created_at = now() - interval '15 months' where merchant_id = $1",
        till.shop.merchant_id,
    )
    assert not broken(await checked(till))


async def test_every_state_of_a_payment_has_attempts_that_agree_with_it(
    till: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await till.sell()
    # Of all rules this one alone is asked, of each pair of states.
    monkeypatch.setattr(checking, "RULES", [rule for rule in RULES if rule.statement == "attempts_agree"])
    monkeypatch.setattr(checking, "BANK_RULES", [])
    agreeing = set()
    for state in PaymentState:
        for attempt_state in AttemptState:
            await breaking.say(till.database, "payment", {"merchant_id": till.shop.merchant_id}, state=state)
            await breaking.say(
                till.database, "payment_attempt", {"merchant_id": till.shop.merchant_id}, state=attempt_state
            )
            found = await checked(till)
            assert set(found) == {"attempts_agree"}
            if not broken(found):
                agreeing.add((state, attempt_state))
    assert {state for state, _ in agreeing} == set(PaymentState)
    assert {attempt_state for _, attempt_state in agreeing} == set(AttemptState)


async def test_money_at_the_bank_under_an_unknown_key_is_named(empty: Database, open_till: Any) -> None:
    till = await open_till(empty)
    await till.desk.acquirers["simulator"].authorize(
        Purchase(
            key="nobody-knows-me",
            amount=Decimal("7.50"),
            currency="EUR",
            card=CardDetails(APPROVED, 12, 2040, "Ada", "123"),
            capture=True,
            not_after=utc_now() + timedelta(minutes=1),
        )
    )
    found = {finding.rule.statement: finding for finding in await check(empty, now=utc_now(), record=till.bank.record)}
    assert broken(found) == {"bank_money_known"}
    assert rows(found["bank_money_known"]) == {("simulated bank", "nobody-knows-me")}


async def test_an_approved_attempt_that_the_bank_has_voided_is_named(till: Any) -> None:
    await till.sell()
    row = await till.database.fetchrow("select * from payment_attempt where merchant_id = $1", till.shop.merchant_id)
    await till.desk.acquirers["simulator"].undo("another-key", row["idempotency_key"])
    found = await checked(till)
    assert broken(found) == {"approved_money_at_bank"}
    assert rows(found["approved_money_at_bank"]) == {("payment_attempt", row["id"])}


async def test_an_approved_attempt_of_another_amount_than_the_banks_is_named(till: Any) -> None:
    await till.sell()
    attempt_id = await till.database.fetchval(
        "update payment_attempt set amount = amount - 1 where merchant_id = $1 returning id", till.shop.merchant_id
    )
    assert ("payment_attempt", attempt_id) in rows((await checked(till))["approved_money_at_bank"])


async def test_an_approved_attempt_that_the_bank_has_never_seen_is_named(till: Any, tmp_path: Path) -> None:
    await till.sell()
    found = await checked(till, Record(tmp_path / "forgetful.sqlite"))
    assert found["approved_money_at_bank"].differences[0].detail.endswith("but the bank does not know it")


@pytest.mark.parametrize("state", ["declined", "failed", "abandoned", "voided"])
async def test_an_attempt_given_up_with_money_at_the_bank_is_named(till: Any, state: str) -> None:
    await till.pay(await till.order(), ANSWER_LOST)
    assert not broken(await checked(till))
    given_up = {"state": "declined", "rare_state": "declined"}
    await breaking.say(till.database, "payment", {"merchant_id": till.shop.merchant_id}, **given_up)
    await breaking.say(till.database, "payment_attempt", {"merchant_id": till.shop.merchant_id}, state=state)
    attempt_id = await till.database.fetchval(
        "select id from payment_attempt where merchant_id = $1", till.shop.merchant_id
    )
    found = await checked(till)
    assert broken(found) == {"given_up_without_money"}
    assert rows(found["given_up_without_money"]) == {("payment_attempt", attempt_id)}


async def test_what_is_paid_while_the_check_runs_is_no_difference(till: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    await till.sell()
    read_earlier = Record(till.bank.record.path)
    monkeypatch.setattr(read_earlier, "operations", lambda: iter(()))
    assert not broken(await checked(till, read_earlier))


async def test_a_long_record_is_compared_in_batches(till: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paydesk.domain.ledger.checking._BATCH", 2)
    for number in (APPROVED, DECLINED, APPROVED, CHALLENGED, APPROVED):
        await till.pay(await till.order(), number)
    assert not broken(await checked(till))
