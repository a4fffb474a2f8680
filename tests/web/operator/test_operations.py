"""What operators do with money, outcomes and the machinery, over all merchants."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from tests import breaking, set_back
from tests.web.account.conftest import Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import Seller, seller_of
from tests.web.account.test_errors_in_every_language import speak

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE, Action, record
from paydesk.domain.business.profiles import PURPOSE
from paydesk.domain.operations.machinery import run_pulse, workers
from paydesk.domain.operations.merchants import suspend_merchant
from paydesk.domain.payments.desk import Desk


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


async def payable(seller: Seller, *, live: bool, currency: str = "USD") -> str:
    """Make 100.00 of a currency available on a side of a merchant; the form for its payout."""
    payment_id = await seller.sell()
    for account, amount in (("available", "-100.0049"), ("acquirer", "100.0049")):
        await seller.database.execute(
            "insert into ledger_entry (merchant_id, live, posting_id, kind, payment_id, account, currency, amount, at)"
            " values ($1, $2, 1, 'settlement', $3, $4, $6, $5, now())",
            seller.shop.merchant_id,
            live,
            payment_id,
            account,
            Decimal(amount),
            currency,
        )
    return f"/operator/payouts/{seller.shop.merchant_id}?currency={currency}&side={'live' if live else 'test'}"


@pytest.fixture
async def payout_page(seller: Seller) -> str:
    """The form for a merchant with 100.00 USD available on its test side."""
    return await payable(seller, live=False)


async def payouts_of(seller: Seller) -> list[tuple[str, str]]:
    rows = await seller.database.fetch(
        "select amount, reference from payout where merchant_id = $1 order by id", seller.shop.merchant_id
    )
    return [(f"{row['amount']:.2f}", row["reference"]) for row in rows]


async def post(visitor: Visitor, page: str, **fields: str):  # type: ignore[no-untyped-def]
    """Post the form of a page whose address has more than a path."""
    path = page.partition("?")[0]
    hidden = fields_of((await visitor.see(page)).text, path)
    return await visitor.web.post(path, data={**hidden, **fields})


PAGES = (
    "overview",
    "search",
    "alarms",
    "payouts",
    "payouts/past",
    "payouts/files",
    "chargebacks",
    "outcomes",
    "acquirers",
    "proceeds",
    "queues",
    "audit",
)


@pytest.mark.parametrize("page", PAGES)
async def test_each_page_is_for_operators_alone(operator: Visitor, owner: Visitor, page: str) -> None:
    assert (await operator.see(f"/operator/{page}")).status_code == 200
    assert (await owner.see(f"/operator/{page}")).status_code == 404


@pytest.mark.parametrize("page", PAGES)
async def test_a_hostile_address_is_a_list_without_a_filter(operator: Visitor, page: str) -> None:
    hostile = (
        "before=%00&after=9-9-9&since=1-1-1&merchant=x%27&person=%F0%9F%98%80&action=%00&state=%27&side=%00&view=x"
    )
    assert (await operator.see(f"/operator/{page}?{hostile}&currency=%00%00")).status_code == 200


@pytest.mark.parametrize("said", [{"side": "tset"}, {"currency": "USDX"}])
async def test_no_payout_is_recorded_of_a_word_that_the_page_does_not_say(
    operator: Visitor, seller: Seller, said: dict[str, str]
) -> None:
    form = await payable(seller, live=True)
    refused = await operator.send(form, form.partition("?")[0], amount="60.00", reference="TRF-1", **said)
    assert refused.status_code == 400
    assert f'"{next(iter(said.values()))}"' in text_of(refused)
    assert await payouts_of(seller) == []


async def test_a_payout_is_recorded_once_however_often_its_form_comes(
    operator: Visitor, seller: Seller, payout_page: str, owner: Visitor
) -> None:
    available = f"/operator/payouts?side=test&merchant={seller.shop.merchant_id}"
    assert "100.00 USD" in text_of(await operator.see(available))
    path = payout_page.partition("?")[0]
    shown = await operator.see(payout_page)
    assert 'value="100.00"' in shown.text, "all that is available is offered, in whole cents"
    hidden = fields_of(shown.text, path)
    form = {**hidden, "amount": "60.00", "reference": "TRF-1"}
    answers = await asyncio.gather(*(operator.web.post(path, data=form) for _ in range(4)))
    assert {leads_to(answer) for answer in answers} == {"/operator/payouts/past?side=test"}
    assert await payouts_of(seller) == [("60.00", "TRF-1")]
    past = await operator.see("/operator/payouts/past?side=test")
    assert "TRF-1" in text_of(past)
    assert "40.00" in text_of(await operator.see(available))
    assert len(await seller.audited("payout_changed")) == 1
    assert "Changed a payout" in text_of(await operator.see(f"/operator/audit?merchant={seller.shop.merchant_id}"))
    assert "payout" in text_of(await owner.see(f"{owner.merchant_path}/settings/audit"))
    file = (await operator.see("/operator/payouts/export?side=test")).text.splitlines()
    columns = "id,at,merchant_id,merchant,currency,amount,reference,recorded_by"
    assert file[0] == ",".join(f'"{name}"' for name in columns.split(","))
    (line,) = [line for line in file[1:] if f',"{seller.shop.merchant_id}","Corner Shop",' in line]
    assert ',"60","TRF-1","person ' in line


async def test_a_second_form_with_the_same_reference_is_asked_for_another(
    operator: Visitor, seller: Seller, payout_page: str
) -> None:
    assert (await post(operator, payout_page, amount="60.00", reference="TRF-1")).status_code == 303
    second = await post(operator, payout_page, amount="10.00", reference="TRF-1")
    assert second.status_code == 409
    assert "has this reference already" in text_of(second)
    assert await payouts_of(seller) == [("60.00", "TRF-1")]


async def test_the_account_to_pay_to_is_read_with_the_password_and_leaves_a_line_in_both_logs(
    operator: Visitor, owner: Visitor, seller: Seller, payout_page: str, database: Database, vault: Vault
) -> None:
    merchant_id, iban = seller.shop.merchant_id, "DE89370400440532013000"
    sealed = vault.seal(iban.encode(), purpose=PURPOSE, merchant_id=merchant_id, row_id=merchant_id)
    of_shop = {"account_holder": "Corner Shop Ltd", "iban_sealed": sealed.blob, "vault_key_id": sealed.key_id}
    await set_back.profile(database, merchant_id, "accepted", **of_shop, iban_last4="3000")
    page = await operator.see(payout_page)
    path = f"/operator/payouts/{merchant_id}/account"
    assert iban[:12] not in page.text
    form = fields_of(page.text, path)
    assert (await owner.web.post(path, data=form)).status_code in (403, 404)
    await set_back.password_long_ago(database, operator.email)
    asked = await operator.web.post(path, data=form)
    assert (asked.status_code, "3704" in asked.text) == (403, False)
    assert await seller.audited("bank_account_read") == []
    await database.execute(
        "update account_session set confirmed_at = now() where person_id in (select id from person where email = $1)",
        operator.email,
    )
    shown = await operator.web.post(path, data=form)
    assert shown.status_code == 200
    assert "DE89 3704 0044 0532 0130 00" in text_of(shown)
    assert "no-store" in shown.headers["cache-control"]
    assert await seller.audited("bank_account_read") == ["bank account"]
    assert "Read a bank account" in text_of(await operator.see(f"/operator/audit?merchant={merchant_id}"))
    assert "Read a bank account" in text_of(await owner.see(f"{owner.merchant_path}/settings/audit"))


async def test_a_suspended_merchants_live_money_is_not_offered_for_a_payout(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    merchant_id, payout_page = seller.shop.merchant_id, await payable(seller, live=True)
    await suspend_merchant(database, COMMAND_LINE, merchant_id, reason="Fraud", now=utc_now())
    listed = await operator.see(f"/operator/payouts?merchant={merchant_id}")
    assert "Suspended" in text_of(listed)
    assert f"/operator/payouts/{merchant_id}?" not in listed.text
    answer = await post(operator, payout_page, amount="1.00", reference="T")
    assert answer.status_code == 409
    assert "is suspended" in text_of(answer)
    assert await payouts_of(seller) == []


async def accepted_account(seller: Seller, *, status: str = "accepted", payouts_from: datetime | None = None) -> None:
    """The merchant has a business profile, with a bank account to which payouts may wait."""
    account = {"account_holder": "Corner Shop Ltd", "iban_last4": "3000", "payouts_from": payouts_from}
    await set_back.profile(seller.database, seller.shop.merchant_id, status, **account)


@pytest.mark.parametrize(
    ("status", "badge", "said"),
    [
        ("accepted", "New bank account", "has a new bank account"),
        ("draft", "Profile not accepted", "nobody has accepted"),
    ],
)
async def test_a_payout_to_a_new_bank_account_waits_unless_an_operator_says_why(
    operator: Visitor, owner: Visitor, seller: Seller, status: str, badge: str, said: str
) -> None:
    page = await payable(seller, live=True)
    waits = utc_now() + timedelta(days=1) if status == "accepted" else None
    await accepted_account(seller, status=status, payouts_from=waits)
    listed = text_of(await operator.see(f"/operator/payouts?merchant={seller.shop.merchant_id - 1}"))
    assert badge in listed
    for reason in ({}, {"despite_wait": "  "}):
        answer = await post(operator, page, amount="1.00", reference="T", **reason)
        assert (answer.status_code, said in text_of(answer)) == (409, True)
    assert await payouts_of(seller) == []
    done = await post(operator, page, amount="1.00", reference="T", despite_wait="Called the owner, it is hers")
    assert leads_to(done) == "/operator/payouts/past"
    assert await payouts_of(seller) == [("1.00", "T")]
    assert "Called the owner" in text_of(await owner.see(f"{owner.merchant_path}/settings/audit"))


async def test_payouts_go_on_when_the_days_of_a_new_bank_account_are_over_and_in_test_mode(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    page, test_page = await payable(seller, live=True), await payable(seller, live=False)
    await accepted_account(seller, payouts_from=utc_now() + timedelta(days=1))
    assert (await post(operator, test_page, amount="1.00", reference="T-0")).status_code == 303
    await set_back.times(database, "business_profile", {}, payouts_from=utc_now() - timedelta(seconds=1))
    assert "despite_wait" not in (await operator.see(page)).text
    assert (await post(operator, page, amount="1.00", reference="T-1")).status_code == 303


async def test_a_reason_pays_no_suspended_merchant_out(operator: Visitor, seller: Seller, database: Database) -> None:
    page = await payable(seller, live=True)
    await accepted_account(seller, payouts_from=utc_now() + timedelta(days=1))
    await suspend_merchant(database, COMMAND_LINE, seller.shop.merchant_id, reason="Fraud", now=utc_now())
    answer = await post(operator, page, amount="1.00", reference="T", despite_wait="I want to")
    assert (answer.status_code, "is suspended" in text_of(answer)) == (409, True)
    assert await payouts_of(seller) == []


SEEN = "It is on the bank's statement of 17 January"


async def test_what_the_bank_has_sent_is_recorded_whatever_is_available_and_though_the_merchant_is_suspended(
    operator: Visitor, owner: Visitor, seller: Seller, database: Database
) -> None:
    page = await payable(seller, live=True)
    await accepted_account(seller, payouts_from=utc_now() + timedelta(days=1))
    await suspend_merchant(database, COMMAND_LINE, seller.shop.merchant_id, reason="Fraud", now=utc_now())
    merchant = await operator.see(f"/operator/merchants/{seller.shop.merchant_id}")
    assert f'href="{page.partition("?")[0]}"' in merchant.text
    answer = await post(operator, page, amount="150.00", reference="T-1", has_left="  ")
    assert (answer.status_code, "is suspended" in text_of(answer)) == (409, True)
    for reference, left in (("T-1", "-50.00"), ("T-2", "-200.00")):
        done = await post(operator, page, amount="150.00", reference=reference, has_left=SEEN)
        assert leads_to(done) == "/operator/payouts/past"
        assert left in text_of(await operator.see(page)).replace("\u2212", "-")
    assert await payouts_of(seller) == [("150.00", "T-1"), ("150.00", "T-2")]
    assert SEEN in text_of(await owner.see(f"{owner.merchant_path}/settings/audit"))


async def test_how_it_is_known_stays_in_the_form_that_is_refused(operator: Visitor, payout_page: str) -> None:
    answer = await post(operator, payout_page, amount="-5", reference="T", has_left=SEEN)
    assert answer.status_code == 400
    assert "statement of 17 January</textarea>" in answer.text


async def test_what_the_bank_has_sent_needs_the_password_again(
    operator: Visitor, seller: Seller, payout_page: str, database: Database
) -> None:
    await set_back.password_long_ago(database)
    answer = await post(operator, payout_page, amount="1.00", reference="T", has_left=SEEN)
    assert answer.status_code == 403
    assert await payouts_of(seller) == []


async def test_the_form_opens_without_a_currency_though_all_that_there_is_waits(
    operator: Visitor, seller: Seller
) -> None:
    await seller.sell()
    form = await operator.see(f"/operator/payouts/{seller.shop.merchant_id}?side=test")
    assert (form.status_code, "Available 0.00 USD" in text_of(form)) == (200, True)


async def test_there_is_no_form_for_a_merchant_or_currency_that_is_none(operator: Visitor, seller: Seller) -> None:
    for asked in (seller.shop.merchant_id, "99999999?currency=USD"):
        assert (await operator.see(f"/operator/payouts/{asked}")).status_code == 404
    assert (await operator.see(f"/operator/payouts/{seller.shop.merchant_id}?currency=QQQ")).status_code == 400


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"amount": "100.01", "reference": "T"}, 409, "are available, not 100.01"),
        ({"amount": "-5", "reference": "T"}, 400, "plain decimal number"),
        ({"amount": "1e3", "reference": "T"}, 400, "plain decimal number"),
        ({"amount": "1.00", "reference": ""}, 400, "needs the reference"),
        ({"amount": "1.00", "reference": "a\u0007b"}, 400, "needs the reference"),
        ({"amount": "1.00", "reference": "T", "currency": "'--"}, 400, "ISO 4217"),
        ({"amount": "1.00", "reference": "T", "request": ""}, 400, "open its page again"),
    ],
)
async def test_a_wrong_payout_is_refused_and_what_was_typed_stays(
    operator: Visitor, seller: Seller, payout_page: str, fields: dict[str, str], status: int, said: str
) -> None:
    answer = await post(operator, payout_page, **fields)
    if "currency" in fields:
        assert answer.status_code in (400, 404)
    else:
        assert (answer.status_code, said in text_of(answer)) == (status, True), text_of(answer)
        assert f'value="{fields["amount"]}"' in answer.text
    assert await payouts_of(seller) == []


async def test_a_payout_needs_the_password_again(
    operator: Visitor, seller: Seller, payout_page: str, database: Database
) -> None:
    await set_back.password_long_ago(database)
    answer = await post(operator, payout_page, amount="1.00", reference="T")
    assert answer.status_code == 403
    assert "password" in text_of(answer).lower()
    assert await payouts_of(seller) == []


async def test_an_unknown_outcome_is_listed_and_asked_for_at_once(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    payment_id = await seller.sell()
    later = utc_now() + timedelta(hours=1)
    await breaking.say(
        database,
        "payment_attempt",
        {"payment_id": payment_id},
        state="processing",
        lookup_at=later,
        lookups=3,
        finished_at=None,
        not_after=utc_now() - timedelta(days=2),
    )
    shown = await operator.see("/operator/outcomes?view=day")
    assert str(payment_id) in text_of(shown)
    assert "3 times" in text_of(shown)
    assert "424242" not in text_of(shown)
    answer = await operator.send("/operator/outcomes", "/operator/outcomes/ask", kind="payment")
    assert leads_to(answer) == "/operator/outcomes"
    due = await database.fetchrow(
        "select lookup_at, state, idempotency_key from payment_attempt where payment_id = $1", payment_id
    )
    assert due["lookup_at"] < utc_now()
    assert due["state"] == "processing"
    assert await database.fetchval("select count(*) from payment_attempt where payment_id = $1", payment_id) == 1
    assert await seller.audited("outcome_asked") == [f"payment {payment_id}"]


@pytest.mark.parametrize("fields", [{}, {"kind": "x", "id": "1"}, {"kind": "refund", "id": "-1", "merchant": "1"}])
async def test_an_incomplete_wish_to_ask_is_refused(operator: Visitor, fields: dict[str, str]) -> None:
    token = fields_of((await operator.see("/account/security")).text, "/account/logout")["csrf"]
    answer = await operator.web.post("/operator/outcomes/ask", data={"csrf": token, **fields})
    assert answer.status_code == 400


async def test_what_has_an_outcome_by_now_is_said_to(operator: Visitor, seller: Seller, database: Database) -> None:
    await seller.sell()
    attempt_id = await database.fetchval(
        "select max(id) from payment_attempt where merchant_id = $1", seller.shop.merchant_id
    )
    token = fields_of((await operator.see("/account/security")).text, "/account/logout")["csrf"]
    form = {"csrf": token, "kind": "payment", "id": attempt_id, "merchant": seller.shop.merchant_id, "live": "0"}
    assert leads_to(await operator.web.post("/operator/outcomes/ask", data=form)) == "/operator/outcomes"
    assert "has an outcome by now" in text_of(await operator.see("/operator/outcomes"))
    assert await seller.audited("outcome_asked") == []


async def test_an_acquirers_health_counts_its_attempts_and_shows_no_secret(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    # What other tests left without an answer belongs to another day.
    await database.execute("update payment_attempt set not_after = not_after - interval '3 days'")
    await seller.sell()
    await seller.sell(number="4000000000009995")
    for period in ("", "?period=day"):
        shown = text_of(await operator.see(f"/operator/acquirers{period}"))
        assert "Simulator Test payments Answers" in shown
        assert "No acquirer for live payments is configured" in shown
        assert re.search(r"Approved [\d,]+ [\d.]+\s% of [\d,]+ Declined [1-9]", shown), shown


async def test_queues_name_what_waits_and_who_works(operator: Visitor, seller: Seller, database: Database) -> None:
    await seller.sell()
    await set_back.times(database, "pingback", {"state": "due"}, due_at=utc_now() - timedelta(hours=1))
    stop = asyncio.Event()
    pulse = asyncio.create_task(run_pulse(database, stop))
    try:
        while not await workers(database):
            assert not pulse.done()
            await asyncio.sleep(0.02)
        shown = text_of(await operator.see("/operator/queues"))
        assert re.search(r"Pingbacks Lags [\d,]+ \S+ [^.]+? ago", shown), shown
        assert "Alive" in shown
        part = await operator.see("/operator/queues", **{"hx-request": "true"})
        assert "<html" not in part.text
        assert "Queues behind Pingbacks" in text_of(await operator.see("/operator/overview"))
        part = await operator.see("/operator/overview", **{"hx-request": "true"})
        assert "<html" not in part.text
        assert "Queues behind" in part.text
    finally:
        stop.set()
        await pulse
    assert await workers(database) == []


async def test_logs_and_who_acted_are_said_in_the_operators_language(operator: Visitor, database: Database) -> None:
    async with database.acquire() as connection:
        about = "person 77 (ops@shop.example)"
        await record(connection, COMMAND_LINE, Action.operator_created, now=utc_now(), subject=about)
    await speak(operator, "de")
    shown = text_of(await operator.see("/operator/queues"))
    assert "Abgelehnte Formulare" in shown
    assert "Rejected form" not in shown
    acts = text_of(await operator.see("/operator/audit"))
    assert "Befehlszeile" in acts
    assert "command line" not in acts
    assert "Person 77 (ops@shop.example)" in acts


async def test_the_log_is_filtered_by_who_what_and_when(operator: Visitor, seller: Seller, payout_page: str) -> None:
    await post(operator, payout_page, amount="1.00", reference="T-77")
    merchant = f"merchant={seller.shop.merchant_id}"
    assert "T-77" in text_of(await operator.see(f"/operator/audit?action=payout_changed&{merchant}"))
    for query in ("person=command", "action=key_shown", "since=2090-01-01", "merchant=1"):
        joined = query if query.startswith("merchant") else f"{query}&{merchant}"
        assert "T-77" not in text_of(await operator.see(f"/operator/audit?{joined}")), query


@pytest.mark.parametrize("data", [{}, {"csrf": "x"}])
async def test_an_operators_form_is_not_taken_without_its_token(
    operator: Visitor, seller: Seller, payout_page: str, data: dict[str, str]
) -> None:
    form = {**data, "amount": "1.00", "currency": "USD", "reference": "T", "side": "test", "request": "r", "id": "1"}
    for path in (payout_page.partition("?")[0], "/operator/outcomes/ask"):
        assert (await operator.web.post(path, data=form)).status_code == 403
    assert await payouts_of(seller) == []
