"""Disputes in the account: the list with the time that is left, and the answer to one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import httpx
import pytest
from tests import breaking, set_back
from tests.core.documents import document, hostile
from tests.web.account.conftest import Join, SignUp, Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import POOR, Seller, seller_of
from tests.web.account.test_errors_in_every_language import speak

from paydesk.adapters.acquirers.mollie.acquirer import MollieAcquirer
from paydesk.adapters.acquirers.simulator import SimulatedAcquirer
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


@pytest.fixture
def answered_at_mollie() -> Iterator[None]:
    """Disputes at the test side's acquirer are answered as Mollie's are."""
    known, said = SimulatedAcquirer.capabilities, MollieAcquirer("test_key").capabilities.answered_at
    # Whoever stands before the acquirer has the same object, and has it already.
    object.__setattr__(known, "answered_at", said)
    yield
    object.__setattr__(known, "answered_at", "")


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


async def test_beside_a_test_clock_the_banks_day_is_one_of_the_shops_everywhere(
    owner: Visitor, seller: Seller, disputed: int
) -> None:
    await set_back.clock_runs_ahead(seller.database, seller.shop.merchant_id, timedelta(days=30))
    until = await seller.database.fetchval("select respond_by from chargeback where id = $1", disputed)
    day = f"{until + timedelta(days=30):%b} {(until + timedelta(days=30)).day}, "
    assert f"Answer until {day}" in text_of(await owner.see(url(owner, f"/{disputed}")))
    assert f"1 dispute to answer until {day}" in text_of(await owner.see(f"{owner.merchant_path}/overview"))


async def test_what_is_ready_to_send_is_in_english_for_whoever_reads_it(
    owner: Visitor, seller: Seller, disputed: int
) -> None:
    for language in ("de", "ar"):
        await speak(owner, language)
        shown = await owner.see(url(owner, f"/{disputed}"))
        assert "Paid: 10.00 USD on 20" in shown.text
        assert re.search(r'<textarea[^>]* dir="auto"', shown.text)


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


async def upload(visitor: Visitor, page: str, content: bytes = b"", name: str = "", /, **fields: str) -> httpx.Response:
    """Post the answer's form as a browser does, with a file or an empty place for one."""
    form = {**fields_of((await visitor.see(page)).text, page), "text": "Delivered", "act": "draft", **fields}
    return await visitor.web.post(page, data=form, files={"file": (name, content, "application/octet-stream")})


async def test_a_file_is_added_shown_downloaded_and_sent(owner: Visitor, seller: Seller, disputed: int) -> None:
    page = url(owner, f"/{disputed}")
    shown = (await owner.see(page)).text
    assert 'enctype="multipart/form-data"' in shown
    assert leads_to(await upload(owner, page, hostile(), 'a"; name="act.pdf', kind="delivery")) == page
    drafted = await owner.see(page)
    (link,) = re.findall(rf'href="({page}/files/[0-9]+)"', drafted.text)
    assert "Delivery: a label, a signed note" in text_of(drafted)
    assert '<option value="delivery"' not in drafted.text, "the bank takes one of each kind"
    assert '<option value="receipt"' in drafted.text
    assert "Delivered</textarea>" in drafted.text, "what was written is kept"
    file = await owner.see(link)
    assert file.headers["content-disposition"].startswith("attachment; ")
    assert file.headers["content-type"] == "application/pdf"
    assert file.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in file.headers["content-security-policy"]
    assert "default-src 'none'" in file.headers["content-security-policy"]
    assert b"JavaScript" not in file.content
    assert file.content.startswith(b"%PDF-")
    assert leads_to(await upload(owner, page, act="send")) == page
    given = await owner.see(page)
    assert link in given.text
    assert "Not given to the bank" not in given.text
    assert "Remove" not in text_of(given)


async def test_a_file_is_removed_by_its_button_and_what_was_typed_stays(owner: Visitor, disputed: int) -> None:
    page = url(owner, f"/{disputed}")
    await upload(owner, page, document(), "räksmörgås.pdf", kind="receipt")
    shown = (await owner.see(page)).text
    (link,), (press,) = (
        re.findall(rf'href="({page}/files/[0-9]+)"', shown),
        re.findall('value="(remove [0-9]+)"', shown),
    )
    named = (await owner.see(link)).headers["content-disposition"]
    assert "filename*=UTF-8''r%C3%A4ksm%C3%B6rg%C3%A5s.pdf" in named
    assert leads_to(await upload(owner, page, act=press, text="Written meanwhile")) == page
    after = await owner.see(page)
    assert "Written meanwhile</textarea>" in after.text
    assert link not in after.text
    assert (await owner.see(link)).status_code == 404
    assert (await upload(owner, page, act=press)).status_code == 404


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (b"<svg onload=alert(1)>", "receipt", "must be a PDF"),
        (document(51), "receipt", "51 pages"),
        (document(), "nonsense", "Say what the file shows"),
        (b"%PDF-" + bytes(8_000_001), "receipt", "8001 kB"),
    ],
)
async def test_a_file_that_is_not_taken_is_refused_at_its_field_and_nothing_typed_is_lost(
    owner: Visitor, disputed: int, content: bytes, kind: str, words: str
) -> None:
    page = url(owner, f"/{disputed}")
    answer = await upload(owner, page, content, "a.pdf", kind=kind, text="Typed for an hour", act="send")
    assert answer.status_code == 400
    assert words in text_of(answer)
    assert "Typed for an hour</textarea>" in answer.text
    assert "The bank has it" not in text_of(await owner.see(page)), "nothing is sent without it"


async def test_files_are_for_the_team_and_operators_alone(
    owner: Visitor, disputed: int, join: Join, sign_up: SignUp
) -> None:
    page = url(owner, f"/{disputed}")
    await upload(owner, page, document(), "a.pdf", kind="receipt")
    (link,) = re.findall(rf'href="({page}/files/[0-9]+)"', (await owner.see(page)).text)
    viewer, other = await join(owner, Role.viewer), await sign_up("Other")
    assert (await viewer.see(link)).status_code == 200
    theirs = link.replace(owner.merchant_path, other.merchant_path)
    assert [(await other.see(address)).status_code for address in (link, theirs)] == [404, 404]
    assert "Remove" not in text_of(await viewer.see(page))
    token = fields_of((await viewer.see("/account/security")).text, "/account/logout")
    answer = await viewer.web.post(page, data={**token, "act": "draft"}, files={"file": ("a.pdf", document())})
    assert answer.status_code == 403


async def test_where_no_files_are_taken_the_page_says_so(owner: Visitor, seller: Seller, disputed: int) -> None:
    await breaking.say(seller.database, "chargeback", {"id": disputed}, acquirer="elsewhere")
    shown = await owner.see(url(owner, f"/{disputed}"))
    assert "takes no files with an answer" in text_of(shown)
    assert 'type="file"' not in shown.text


@pytest.mark.usefixtures("answered_at_mollie")
async def test_where_the_bank_takes_no_evidence_from_here_the_page_says_where_it_is_given(
    owner: Visitor, disputed: int
) -> None:
    page = url(owner, f"/{disputed}")
    shown = text_of(await owner.see(page))
    assert "Mollie takes a merchant's side in its dashboard only. Give what is known below to" in shown
    assert "Order A-17" in shown
    assert "<textarea" not in (await owner.see(page)).text
    await speak(owner, "de")
    assert "Mollie takes a merchant's side" not in text_of(await owner.see(page))


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
