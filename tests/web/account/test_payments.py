import asyncio
import csv
import io
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from tests import set_back
from tests.web.account.conftest import PASSWORD, Join, SignUp, Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import ANSWER_LOST, POOR, Seller, seller_of

from paydesk.core.clock import utc_now
from paydesk.database import surely
from paydesk.domain.accounts.roles import Role
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.payments import movements
from paydesk.domain.payments.desk import Desk
from paydesk.web.console.payment_words import instrument_words


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


def listed(page: str) -> list[str]:
    """The orders of a list, in its order."""
    return re.findall(r'href="[^"]+/payments/\d+"><bdi>[^<]+</bdi><span class="visually-hidden">, <bdi>([^<]+)', page)


def url(visitor: Visitor, page: str = "") -> str:
    return f"{visitor.merchant_path}/payments{page}"


async def refund(visitor: Visitor, payment_id: int, **fields: str) -> httpx.Response:
    """Send the form of somebody who is sure."""
    page = url(visitor, f"/{payment_id}")
    return await visitor.send(page, f"{page}/refund", **{"sure": "1", **fields})


async def test_a_shop_without_payments_says_so(owner: Visitor) -> None:
    assert "No payments yet." in text_of(await owner.see(url(owner)))


async def test_one_box_finds_by_order_mail_last_four_and_id(owner: Visitor, seller: Seller) -> None:
    first = await seller.sell("A-1", email="Ada@example.com")
    await seller.sell("A-2", number="5555555555554444")
    for typed, found in {
        "A-1": ["A-1"],
        "ada@example.com": ["A-1"],
        "4444": ["A-2"],
        str(first): ["A-1"],
        f"%23{first}": ["A-1"],
        "nothing": [],
        "": ["A-2", "A-1"],
    }.items():
        assert listed((await owner.see(f"{url(owner)}?q={typed}")).text) == found, typed


async def test_filters_narrow_down_by_status_and_days(owner: Visitor, seller: Seller) -> None:
    noon = utc_now().replace(hour=12) - timedelta(days=1)
    await seller.sell("old", now=noon - timedelta(days=40))
    await seller.sell("poor", number=POOR, now=noon)
    await seller.sell("good", now=noon)
    that_day, month = (f"{noon - timedelta(days=days):%Y-%m-%d}" for days in (0, 30))
    assert listed((await owner.see(f"{url(owner)}?status=declined")).text) == ["poor"]
    assert listed((await owner.see(f"{url(owner)}?status=captured&since={month}")).text) == ["good"]
    assert listed((await owner.see(f"{url(owner)}?until={month}")).text) == ["old"]
    assert listed((await owner.see(f"{url(owner)}?since={that_day}&until={that_day}")).text) == ["good", "poor"]
    assert listed((await owner.see(f"{url(owner)}?q=4242&status=captured")).text) == ["good", "old"]


async def test_a_tab_counts_what_is_in_it_where_that_is_cheap(
    owner: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await seller.sell(f"poor-{number}", number=POOR)
    await seller.sell("good")
    shown = text_of(await owner.see(url(owner)))
    assert "All Paid Authorized Refunded Charged back Declined 3 Voided Not sure yet" in shown
    monkeypatch.setattr("paydesk.web.account.payments.COUNTED", 1)
    monkeypatch.setattr("paydesk.web.console.list_parameters.COUNTED", 1)
    assert "Declined 1+" in text_of(await owner.see(url(owner)))
    assert "Declined 1+" not in text_of(await owner.see(f"{url(owner)}?q=good"))
    taken = await owner.see(f"{url(owner)}?status=taken")
    assert "Not sure yet Successful, refunded or not" in text_of(taken)
    assert listed(taken.text) == ["good"]
    await seller.sell("lost", number=ANSWER_LOST)
    assert listed((await owner.see(f"{url(owner)}?status=open")).text) == ["lost"]


async def test_a_row_says_what_was_bought_and_offers_its_reference_to_copy(owner: Visitor, seller: Seller) -> None:
    await seller.sell("WC-2026-00042")
    page = await owner.see(url(owner))
    assert "10.00 USD , WC-2026-00042 Paid A mug grace@example.com Visa •••• 4242" in text_of(page).replace("\xa0", " ")
    assert 'data-copy="WC-2026-00042"' in page.text


def test_a_cards_digits_stay_with_their_dots_where_a_line_breaks() -> None:
    assert instrument_words("amex", "0005").split(" ") == ["American", "Express", "••••\u00a00005"]


async def test_a_common_last_four_is_found_too(owner: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paydesk.domain.business.search_for_team.COMMON", 1)
    for number in range(3):
        await seller.sell(f"n-{number}")
    await refund(owner, await seller.sell("back"), amount="10")
    assert listed((await owner.see(f"{url(owner)}?q=4242")).text) == ["back", "n-2", "n-1", "n-0"]
    assert listed((await owner.see(f"{url(owner)}?q=4242&status=refunded")).text) == ["back"]
    for number in range(2):
        await seller.sell(f"open-{number}", number=ANSWER_LOST)
    found = (await owner.see(f"{url(owner)}?q={ANSWER_LOST[-4:]}&status=processing")).text
    assert listed(found) == ["open-1", "open-0"]
    assert listed((await owner.see(f"{url(owner)}?q=4242&status=processing")).text) == []


async def test_a_long_list_is_read_page_by_page(
    owner: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paydesk.web.account.payments.ROWS", 2)
    for number in range(5):
        await seller.sell(f"n-{number}")
    seen: list[str] = []
    page = url(owner)
    while page:
        shown = (await owner.see(page)).text
        seen += listed(shown)[:2]
        older = re.search(r'href="([^"]+)" rel="next"', shown)
        page = older[1] if older else ""
    assert seen == ["n-4", "n-3", "n-2", "n-1", "n-0"]


async def test_the_export_is_the_list_as_a_file_and_is_audited(owner: Visitor, seller: Seller) -> None:
    await seller.sell("=cmd()", email="ada@example.com")
    await seller.sell("other")
    answer = await owner.see(f"{url(owner, '/export')}?q=ada@example.com")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["merchant_order_id"], row["status"], row["amount"]) for row in rows] == [
        ("'=cmd()", "captured", "10.0000")
    ]
    assert await seller.audited("exported") == ["payments"]


async def test_the_export_holds_all_pages(owner: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paydesk.domain.business.search_for_team._AT_ONCE", 2)
    for number in range(5):
        await seller.sell(f"n-{number}")
    rows = csv.DictReader(io.StringIO((await owner.see(url(owner, "/export"))).text))
    assert [row["merchant_order_id"] for row in rows] == ["n-4", "n-3", "n-2", "n-1", "n-0"]


async def test_a_payment_tells_everything_in_time_order(owner: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell("A-1", number=POOR)
    await seller.sell("A-1")
    await refund(owner, payment_id, amount="4.00")
    shown = text_of(await owner.see(url(owner, f"/{payment_id}")))
    told = [
        "Attempt to pay with Visa •••• 9995", "Declined Not enough money on the card",
        "Attempt to pay with Visa •••• 4242", "Paid", "Pingback: payment", "Refunded: 4.00", "by Ada Lovelace",
    ]  # fmt: skip
    lines = shown.split("Timeline")[1].split("Customer")[0]
    places = [lines.find(line) for line in told]
    assert -1 not in places, lines
    assert places == sorted(places)
    for fact in ("Grace Hopper", "grace@example.com", "United Kingdom", "Pending", "Given back"):
        assert fact in shown


async def test_a_chargeback_and_what_it_took_stand_on_the_page(owner: Visitor, seller: Seller) -> None:
    await set_back.banks_tell_again(seller.database)
    payment_id = await seller.sell(number="4000000000000259")
    await read_disputes(seller.desk, now=utc_now())
    shown = text_of(await owner.see(url(owner, f"/{payment_id}"))).replace("\u00a0", " ")
    assert "Chargeback: the bank took back 10.00 USD" in shown
    assert "The cardholder says that they did not pay this; fee 15.00 USD" in shown
    assert "Pending 0.00 USD Available −15.60 USD" in shown
    assert "Give money back" not in shown


async def test_who_can_still_refund_a_payment_reads_that_its_bank_suspects_fraud(
    owner: Visitor, seller: Seller
) -> None:
    payment_id = await seller.sell()
    page, suspected = url(owner, f"/{payment_id}"), "The cardholder's bank suspects fraud. Consider a refund"
    assert suspected not in text_of(await owner.see(page))
    about = Alarm(AlarmKind.fraud_warned, f"payment {payment_id}", "fraud", seller.shop)
    await raise_alarms(seller.database, [about], now=utc_now())
    assert suspected in text_of(await owner.see(page))
    await refund(owner, payment_id, how="all")
    assert suspected not in text_of(await owner.see(page))


async def test_3d_secure_that_is_waited_for_stands_in_the_timeline(owner: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell(number="4000000000003220")
    shown = text_of(await owner.see(url(owner, f"/{payment_id}")))
    assert "3-D Secure: the bank asked the customer to confirm" in shown
    assert "Give money back" not in shown


async def test_the_parts_of_the_money_sum_up_as_they_stand(owner: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell(amount="129.90")
    shown = text_of(await owner.see(url(owner, f"/{payment_id}"))).replace("\u00a0", " ")
    assert "Fees −4.197 USD Reserve −6.495 USD Net 119.208 USD" in shown


async def test_what_is_settled_and_released_is_available(owner: Visitor, seller: Seller) -> None:
    payment_id, now = await seller.sell(), utc_now()
    for days in (8, 181):
        later = now + timedelta(days=days)
        await settle_due(seller.database, real_now=now, merchant_id=seller.shop.merchant_id, at=later)
    shown = text_of(await owner.see(url(owner, f"/{payment_id}"))).replace("\u00a0", " ")
    assert "The net amount became available" in shown
    assert "The reserve was released" in shown
    assert "Pending 0.00 USD Available 9.40 USD Reserve 0.00 USD" in shown


async def test_money_is_given_back_once_however_often_the_form_is_sent(owner: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell()
    page = url(owner, f"/{payment_id}")
    form = fields_of((await owner.see(page)).text, f"{page}/refund")
    for _ in range(2):
        assert leads_to(await owner.web.post(f"{page}/refund", data={**form, "amount": "4,00", "sure": "1"})) == page
    assert "4.00 USD is given back" in text_of(await owner.see(page)).replace("\u00a0", " ")
    refunded = await seller.database.fetchval("select refunded from payment where id = $1", payment_id)
    assert refunded == 4
    assert await seller.audited("payment_refunded") == [f"payment {payment_id}"]
    changed = await owner.web.post(f"{page}/refund", data={**form, "amount": "5", "sure": "1"})
    assert changed.status_code == 409


@pytest.mark.parametrize(
    ("how", "amount", "said"), [("all", "", "10.00"), ("part", "4,5", "4.50"), ("", "4.5", "4.50")]
)
async def test_how_much_goes_to_whom_is_said_before_it_goes(
    owner: Visitor, seller: Seller, how: str, amount: str, said: str
) -> None:
    payment_id = await seller.sell("mug")
    page = url(owner, f"/{payment_id}")
    asked = await refund(owner, payment_id, amount=amount, how=how, sure="")
    assert f"Refund {said} USD to Visa •••• 4242?" in text_of(asked).replace("\u00a0", " ")
    assert "Order mug of" in text_of(asked)
    assert await seller.state(payment_id) == "captured"
    form = fields_of(asked.text, f"{page}/refund")
    for _ in range(2):
        assert leads_to(await owner.web.post(f"{page}/refund", data=form)) == page
    assert await seller.database.fetchval("select refunded from payment where id = $1", payment_id) == Decimal(said)


async def test_no_amount_is_filled_in_for_anybody(owner: Visitor, seller: Seller) -> None:
    shown = await owner.see(url(owner, f"/{await seller.sell()}"))
    assert re.search(r'name="amount"[^>]*value=""', shown.text)
    assert "Refund all 10.00 USD" in text_of(shown).replace("\u00a0", " ")


@pytest.mark.parametrize("said", [{"sure": "0"}, {"sure": "10"}, {"how": "everything"}])
async def test_nothing_goes_by_a_word_that_the_page_does_not_say(
    owner: Visitor, seller: Seller, said: dict[str, str]
) -> None:
    payment_id = await seller.sell("mug")
    refused = await refund(owner, payment_id, **{"amount": "4.50", **said})
    assert (refused.status_code, "is none of the choices" in text_of(refused)) == (400, True)
    assert "Refund all 10.00 USD" in text_of(await owner.see(url(owner, f"/{payment_id}"))).replace("\u00a0", " ")


@pytest.mark.parametrize("sure", ["", "1"])
async def test_what_can_not_be_given_back_is_said_at_once(owner: Visitor, seller: Seller, sure: str) -> None:
    payment_id = await seller.sell()
    assert (await refund(owner, payment_id, amount="10.01", sure=sure)).status_code == 400
    assert (await refund(owner, payment_id, amount="10.00")).status_code == 303
    gone = await owner.web.post(
        url(owner, f"/{payment_id}/refund"),
        data={
            **fields_of((await owner.see("/account/security")).text, "/account/logout"),
            "how": "all",
            "sure": sure,
            "request_key": "k" * 32,
        },
    )
    assert gone.status_code == 400


async def test_a_form_that_is_sent_many_times_at_once_moves_money_once(owner: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell()
    page = url(owner, f"/{payment_id}")
    form = {**fields_of((await owner.see(page)).text, f"{page}/refund"), "amount": "4.00", "sure": "1"}
    answers = await asyncio.gather(*(owner.web.post(f"{page}/refund", data=form) for _ in range(6)))
    assert {answer.status_code for answer in answers} == {303}
    assert await seller.database.fetchval("select refunded from payment where id = $1", payment_id) == 4
    assert await seller.database.fetchval("select count(*) from movement where payment_id = $1", payment_id) == 1
    assert await seller.audited("payment_refunded") == [f"payment {payment_id}"]


@pytest.mark.parametrize("amount", ["", "0", "-1", "10.01", "1.001", "1e1", "NaN", "9" * 30, "<b>", "\x00"])
async def test_an_amount_that_can_not_be_given_back_is_refused(owner: Visitor, seller: Seller, amount: str) -> None:
    payment_id = await seller.sell()
    answer = await refund(owner, payment_id, amount=amount)
    assert answer.status_code == 400
    assert 'id="e-amount"' in answer.text
    assert await seller.state(payment_id) == "captured"


async def test_a_refund_without_its_key_moves_nothing(owner: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell()
    assert (await refund(owner, payment_id, amount="1.00", request_key="")).status_code == 400
    assert await seller.state(payment_id) == "captured"


@pytest.mark.parametrize("more", [{"amuont": "1.00"}, {"amount": ["1.00", "4.00"]}])
async def test_a_form_that_says_more_than_it_should_moves_nothing(
    owner: Visitor, seller: Seller, more: dict[str, Any]
) -> None:
    payment_id = await seller.sell()
    page = url(owner, f"/{payment_id}")
    form = fields_of((await owner.see(page)).text, f"{page}/refund")
    answer = await owner.web.post(f"{page}/refund", data={**form, "amount": "4.00", "sure": "1", **more})
    assert answer.status_code == 400
    assert "open its page again" in text_of(answer) or "open the page again" in text_of(answer)
    assert await seller.state(payment_id) == "captured"


async def test_a_refund_that_nobody_is_sure_of_is_never_called_undone(
    owner: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    payment_id = await seller.sell()
    page = url(owner, f"/{payment_id}")
    form = {**fields_of((await owner.see(page)).text, f"{page}/refund"), "amount": "4.00", "sure": "1"}
    honest = movements.queries.begin_refund

    async def begin_and_lose(connection: Any, **asked: Any) -> None:
        await honest(connection, **asked)
        raise OSError("the database is away")

    async def lose(*_: Any, **__: Any) -> None:
        raise OSError("the database is away")

    with monkeypatch.context() as away:
        away.setattr(movements.queries, "begin_refund", begin_and_lose)
        away.setattr(movements.queries, "find_intent", lose)
        away.setattr(surely, "PATIENCE", 0)
        answer = await owner.web.post(f"{page}/refund", data=form)
    assert answer.status_code == 503
    said = text_of(answer)
    assert "We don't know whether that worked" in said
    assert "not known whether a refund" in said
    assert leads_to(await owner.web.post(f"{page}/refund", data=form)) == page
    assert await seller.database.fetchval("select count(*) from movement where payment_id = $1", payment_id) == 1


async def test_a_database_that_goes_away_over_a_form_leaves_open_whether_it_was_done(
    owner: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    payment_id = await seller.sell()

    async def lose(*_: Any, **__: Any) -> None:
        raise OSError("the database is away")

    monkeypatch.setattr("paydesk.domain.business.acting.refund", lose)
    answer = await refund(owner, payment_id, amount="4.00")
    assert answer.status_code == 503
    assert "look how it stands before you do it again" in text_of(answer)


async def test_much_money_needs_the_password_again(owner: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell(amount="900.00")
    await set_back.password_long_ago(seller.database)
    assert (await refund(owner, payment_id, amount="499.00")).status_code == 303
    asked = await refund(owner, payment_id, amount="2.00")
    assert asked.status_code == 403
    assert "password" in text_of(asked)
    hidden = fields_of(asked.text, "/account/confirm")
    answer = await owner.web.post("/account/confirm", data={**hidden, "_password": PASSWORD}, follow_redirects=True)
    assert "2.00 USD is given back" in text_of(answer).replace("\u00a0", " ")
    assert await seller.database.fetchval("select refunded from payment where id = $1", payment_id) == 501


async def test_who_may_not_refund_sees_no_form_and_is_refused(owner: Visitor, seller: Seller, join: Join) -> None:
    payment_id = await seller.sell()
    page = url(owner, f"/{payment_id}")
    form = fields_of((await owner.see(page)).text, f"{page}/refund")
    for role in (Role.viewer, Role.developer):
        member = await join(owner, role)
        shown = (await member.see(page)).text
        assert f"{page}/refund" not in shown
        csrf = fields_of(shown, "/account/logout")
        assert (await member.web.post(f"{page}/refund", data={**form, **csrf})).status_code == 403
    viewer = await join(owner, Role.viewer)
    assert (await viewer.see(url(owner, "/export"))).status_code == 403
    assert await seller.state(payment_id) == "captured"


async def test_another_merchants_payment_is_not_found(owner: Visitor, seller: Seller, sign_up: SignUp) -> None:
    payment_id = await seller.sell()
    other = await sign_up("Other Shop")
    assert (await other.see(url(owner, f"/{payment_id}"))).status_code == 404
    assert (await other.see(url(other, f"/{payment_id}"))).status_code == 404
    assert listed((await other.see(f"{url(other)}?q={payment_id}")).text) == []


@pytest.mark.parametrize(
    "query",
    ["before=x", "before=1-99999999999999999999", "q=%00", "q=" + "9" * 299, "q='%3B--", "q=0000", "status=x",
     "since=x&until=0001-01-01", "until=9999-12-31", "since=2026-W01-1", "subscription=99999999999999999999"],
)  # fmt: skip
async def test_a_hostile_query_never_fails(owner: Visitor, seller: Seller, query: str) -> None:
    await seller.sell()
    assert (await owner.see(f"{url(owner)}?{query}")).status_code == 200


async def test_what_customers_typed_is_shown_as_text(owner: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell("<script>alert(1)</script>")
    for page in (url(owner), url(owner, f"/{payment_id}")):
        assert "<script>alert" not in (await owner.see(page)).text
