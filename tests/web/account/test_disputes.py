"""Disputes in the account: the list with the time that is left, and the answer to one."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from tests import breaking, set_back
from tests.web.account.conftest import Join, SignUp, Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import POOR, Seller, seller_of

from paydesk.core.clock import utc_now
from paydesk.domain.accounts.roles import Role
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import refund

CHARGED_BACK = "4000000000000259"


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


@pytest.fixture
async def disputed(seller: Seller) -> int:
    """A chargeback of the visitor's."""
    await set_back.banks_tell_again(seller.database)
    await seller.sell("A-17", number=CHARGED_BACK)
    await read_disputes(seller.desk, now=utc_now())
    found = await seller.database.fetchval("select id from chargeback where merchant_id = $1", seller.shop.merchant_id)
    return int(found)


def url(visitor: Visitor, page: object = "") -> str:
    return f"{visitor.merchant_path}/disputes{page}"


async def test_a_dispute_is_listed_with_the_time_that_is_left_and_answered(
    owner: Visitor, seller: Seller, disputed: int
) -> None:
    assert url(owner) in (await owner.see(f"{owner.merchant_path}/overview")).text
    listed = text_of(await owner.see(url(owner)))
    for words in ("A-17", "Money taken", "they did not pay this", "7 days left"):
        assert words in listed, words
    page = url(owner, f"/{disputed}")
    shown = await owner.see(page)
    for words in ("Order A-17", "Grace Hopper", "grace@example.com", "Paid from", "Answer until"):
        assert words in text_of(shown), words
    assert leads_to(await owner.send(page, text="Delivered\r\non Monday", act="draft")) == page
    drafted = await owner.see(page)
    assert "Delivered\non Monday</textarea>" in drafted.text
    assert "The bank has not been given it." in text_of(drafted)
    assert await seller.audited("evidence_given") == []
    assert leads_to(await owner.send(page, text="Delivered on Monday, signed for", act="send")) == page
    given = await owner.see(page)
    assert "The bank has it" in text_of(given)
    assert "signed for" in text_of(given)
    assert "<textarea" not in given.text
    assert "Given" in text_of(await owner.see(url(owner)))
    assert await seller.audited("evidence_given") == [f"chargeback {disputed}"]
    payment_id = await seller.database.fetchval("select payment_id from chargeback where id = $1", disputed)
    assert page in (await owner.see(f"{owner.merchant_path}/payments/{payment_id}")).text


async def test_what_the_customer_paid_before_undisputed_speaks_for_the_shop(owner: Visitor, seller: Seller) -> None:
    await set_back.banks_tell_again(seller.database)
    await seller.sell("E-disputed", number=CHARGED_BACK)
    await read_disputes(seller.desk, now=utc_now())
    await seller.sell("E-good", email="GRACE@example.com")
    await seller.sell("E-poor", number=POOR)
    back = await seller.sell("E-back")
    await refund(seller.desk, seller.shop, back, Decimal(10), requested_by="test", now=utc_now())
    await seller.sell("E-of-another", email="ada@example.com")
    await seller.sell("A-17", number=CHARGED_BACK)
    await set_back.banks_tell_again(seller.database)
    await read_disputes(seller.desk, now=utc_now())
    await seller.sell("E-later")
    newest = "select max(id) from chargeback where merchant_id = $1"
    shown = text_of(await owner.see(url(owner, f"/{await seller.database.fetchval(newest, seller.shop.merchant_id)}")))
    written, known = shown.rsplit("What we know", 1)
    assert "Paid before, undisputed E-good" in known
    assert known.count("Paid before, undisputed") == 1
    assert "The same customer paid the order E-good on" in written, "it is filled in, too"


async def test_who_was_erased_is_taken_for_nobody_else(owner: Visitor, seller: Seller, disputed: int) -> None:
    of_shop = {"merchant_id": seller.shop.merchant_id}
    paid = await seller.sell("E-of-another", email="ada@example.com")
    await set_back.times(seller.database, "payment", {"id": paid}, paid_at=utc_now() - timedelta(days=3))
    await breaking.say(seller.database, "customer", of_shop, email="erased", erased_at=utc_now())
    shown = text_of(await owner.see(url(owner, f"/{disputed}")))
    assert "E-of-another" not in shown


async def test_a_second_press_says_that_the_bank_has_it(owner: Visitor, seller: Seller, disputed: int) -> None:
    page = url(owner, f"/{disputed}")
    form = {**fields_of((await owner.see(page)).text, page), "text": "Delivered", "act": "send"}
    assert leads_to(await owner.web.post(page, data=form)) == page
    again = await owner.web.post(page, data={**form, "text": "Delivered twice"})
    assert (again.status_code, "has the evidence already" in text_of(again)) == (409, True)
    assert "Delivered twice" not in text_of(await owner.see(page))


async def test_an_answer_that_comes_too_late_is_refused_with_words(
    owner: Visitor, seller: Seller, disputed: int
) -> None:
    page = url(owner, f"/{disputed}")
    form = {**fields_of((await owner.see(page)).text, page), "text": "Delivered", "act": "send"}
    await breaking.say(seller.database, "chargeback", {"id": disputed}, respond_by=utc_now() - timedelta(hours=1))
    answer = await owner.web.post(page, data=form)
    assert answer.status_code == 409
    assert "time for an answer is over" in text_of(answer)
    assert "<textarea" not in answer.text
    assert "too late" in text_of(await owner.see(url(owner)))


async def test_an_empty_answer_is_refused_at_its_field(owner: Visitor, disputed: int) -> None:
    answer = await owner.send(url(owner, f"/{disputed}"), text="  ", act="send")
    assert answer.status_code == 400
    assert "evidence is a text of" in text_of(answer).lower()


async def test_who_may_not_answer_reads(owner: Visitor, disputed: int, join: Join, sign_up: SignUp) -> None:
    page = url(owner, f"/{disputed}")
    form = {**fields_of((await owner.see(page)).text, page), "text": "Delivered", "act": "send"}
    viewer, other = await join(owner, Role.viewer), await sign_up("Other")
    assert "<textarea" not in (await viewer.see(page)).text
    for visitor, status in ((viewer, 403), (other, 404)):
        token = fields_of((await visitor.see("/account/security")).text, "/account/logout")
        assert (await visitor.web.post(page, data={**form, **token})).status_code == status
    assert (await other.see(page)).status_code == 404
    assert "A-17" not in (await other.see(url(other))).text
    support = await join(owner, Role.support)
    assert "<textarea" in (await support.see(page)).text
