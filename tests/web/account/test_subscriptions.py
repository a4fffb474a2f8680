import asyncio
import re
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking
from tests.changing import change
from tests.web.account.conftest import Join, SignUp, Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import Seller, seller_of

from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.domain.accounts.roles import Role
from paydesk.domain.billing.foreseeing import HELD
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

MONTHLY = Terms("Coffee club", "club", "USD", Decimal("10.00"), Period(1, "month"), None, 0)


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


async def subscribe(seller: Seller, reference: str = "S-1", terms: Terms = MONTHLY, **more: str) -> int:
    payment_id = await seller.sell(reference, terms=terms, **more)  # type: ignore[arg-type]
    found = await seller.database.fetchval("select subscription_id from payment where id = $1", payment_id)
    return int(found)


def url(visitor: Visitor, page: object = "") -> str:
    return f"{visitor.merchant_path}/subscriptions{page}"


def listed(page: str) -> list[str]:
    return re.findall(r'class="whole-row" href="[^"]+/subscriptions/(\d+)">', page)


async def test_the_list_is_by_state_and_found_by_one_box(owner: Visitor, seller: Seller) -> None:
    trial = replace(MONTHLY, sku_id="trial", trial=Trial(Decimal(0), Period(14, "day")))
    first = await subscribe(seller, "S-1", email="ada@example.com")
    second = await subscribe(seller, "S-2", terms=trial)
    for query, found in {
        "": [second, first],
        "?status=Trial": [second],
        "?status=Active": [first],
        "?status=Cancelled": [],
        "?q=ADA@example.com": [first],
        "?q=S-2": [second],
        f"?q={first}": [first],
        f"?q={first}&status=Trial": [],
        "?q=nobody@example.com": [],
    }.items():
        assert listed((await owner.see(url(owner, query))).text) == [str(one) for one in found], query


async def test_those_whose_charges_fail_have_a_list_that_the_overview_leads_to(owner: Visitor, seller: Seller) -> None:
    failing, _, ended = [await subscribe(seller, f"S-{number}") for number in range(3)]
    change = "update subscription set failures = 1, state = $2, date_next = null where id = $1"
    await seller.database.execute(change, failing, "Active")
    await seller.database.execute(change, ended, "Cancelled")
    page = (await owner.see(url(owner, "?status=failing"))).text
    assert [int(one) for one in listed(page)] == [failing]
    assert "Payment failing" in page
    assert url(owner, "?status=failing") in (await owner.see(f"{owner.merchant_path}/overview")).text
    assert "Nothing fits" in text_of(await owner.see(url(owner, "?status=failing&before=1-1")))
    assert "All Trial Active Cancelled 1 Completed Payment failing 1 Search" in text_of(await owner.see(url(owner)))


async def test_the_page_shows_the_terms_and_the_charges_ahead(owner: Visitor, seller: Seller) -> None:
    limited = replace(MONTHLY, limit=4)
    shown = await owner.see(url(owner, f"/{await subscribe(seller, terms=limited)}"))
    text = text_of(shown).replace("\u00a0", " ")
    assert re.findall(r"Period (\d+)", text.split("Coming charges")[-1].split("What was")[0]) == ["2", "3", "4"]
    for fact in ("Coffee club", "10.00 USD / month", "1 / 4", "Visa •••• 4242", "grace@example.com"):
        assert fact in text, fact
    endless = text_of(await owner.see(url(owner, f"/{await subscribe(seller, 'S-2')}")))
    assert len(re.findall(r"Period \d+", endless.split("Coming charges")[-1].split("What was")[0])) == 12


async def test_its_future_is_one_line_and_its_past_below(owner: Visitor, seller: Seller) -> None:
    def told(page: str) -> tuple[str, str]:
        text = page.replace("\u00a0", " ")
        return text.split("What comes")[1].split("Coming charges")[0].strip(), text.split("What was")[1]

    endless = text_of(await owner.see(url(owner, f"/{await subscribe(seller)}")))
    comes, was = told(endless)
    assert re.fullmatch(r"Next charge 10\.00 USD on \w{3} \d+, \d{4}, then monthly", comes)
    assert re.match(r" 10\.00 USD · Paid Period 1 .* Taken out ", was)
    weeks = replace(MONTHLY, sku_id="weeks", period=Period(2, "week"), trial=Trial(Decimal(1), Period(14, "day")))
    comes, was = told(text_of(await owner.see(url(owner, f"/{await subscribe(seller, 'S-2', terms=weeks)}"))))
    assert re.fullmatch(r"Next charge 10\.00 USD on [\w ,]+, then every 2 weeks", comes)
    assert " · Paid Trial " in was
    limited = replace(MONTHLY, sku_id="limited", limit=4)
    comes, _ = told(text_of(await owner.see(url(owner, f"/{await subscribe(seller, 'S-3', terms=limited)}"))))
    assert re.fullmatch(r"Next charge 10\.00 USD on [\w ,]+, then monthly until \w{3} \d+, \d{4}", comes)
    twice = replace(MONTHLY, sku_id="twice", limit=2)
    comes, _ = told(text_of(await owner.see(url(owner, f"/{await subscribe(seller, 'S-4', terms=twice)}"))))
    assert re.fullmatch(r"Last charge 10\.00 USD on \w{3} \d+, \d{4}", comes)


async def test_it_is_cancelled_after_a_question_and_once(owner: Visitor, seller: Seller) -> None:
    subscription_id = await subscribe(seller)
    page = url(owner, f"/{subscription_id}")
    question = await owner.see(f"{page}/cancel")
    assert "Cancel the subscription to Coffee club?" in text_of(question)
    form = fields_of(question.text, f"{page}/cancel")
    answers = await asyncio.gather(*(owner.web.post(f"{page}/cancel", data=form) for _ in range(4)))
    assert {leads_to(answer) for answer in answers} == {page}
    shown = text_of(await owner.see(page))
    assert "by your team" in shown
    assert "Nothing is charged any more." in shown
    assert await seller.audited("subscription_cancelled") == [f"subscription {subscription_id}"]
    told = await seller.database.fetchval(
        "select count(*) from pingback where subscription_id = $1 and event = 'subscription_cancelled'", subscription_id
    )
    assert told == 1


async def test_the_portals_link_is_for_those_who_may_cancel(owner: Visitor, seller: Seller, join: Join) -> None:
    page = url(owner, f"/{await subscribe(seller)}")
    link = re.search(r"<code[^>]*>(http[^<]+/portal/[^<]+)</code>", (await owner.see(page)).text)
    assert link is not None
    assert (await owner.web.get(link[1])).status_code == 200
    for role in (Role.viewer, Role.developer):
        member = await join(owner, role)
        shown = await member.see(page)
        assert shown.status_code == 200
        assert "/portal/" not in shown.text
        assert (await member.see(f"{page}/cancel")).status_code == 403
        csrf = fields_of(shown.text, "/account/logout")
        assert (await member.web.post(f"{page}/cancel", data=csrf)).status_code == 403


async def test_packages_are_shown_with_their_versions(owner: Visitor, seller: Seller) -> None:
    await subscribe(seller, "S-1")
    await subscribe(seller, "S-2")
    await subscribe(seller, "S-3", terms=replace(MONTHLY, price=Decimal("12.00")))
    packages = await owner.see(url(owner, "/packages"))
    assert "12.00 USD / month , Coffee club Coffee club 3 2" in text_of(packages).replace("\u00a0", " ")
    link = re.search(r'href="([^"]+/packages/\d+)"', packages.text)
    assert link is not None
    versions = text_of(await owner.see(link[1])).replace("\u00a0", " ")
    assert re.search(r"12\.00 USD / month \d+ newest Coffee club none ∞ 1", versions)
    assert re.search(r"10\.00 USD / month \d+ Coffee club none ∞ 2", versions)


async def test_a_version_is_offered_on_customers_pages_and_taken_back(
    owner: Visitor, seller: Seller, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = await subscribe(seller, "S-1")
    await subscribe(seller, "S-2", terms=replace(MONTHLY, sku_id="pro", name="Pro", price=Decimal("30.00")))
    portal = re.search(r"<code[^>]*>(http[^<]+/portal/[^<]+)</code>", (await owner.see(url(owner, f"/{own}"))).text)
    assert portal is not None
    pages = set(re.findall(r'href="([^"]+/packages/\d+)"', (await owner.see(url(owner, "/packages"))).text))
    club, pro = sorted(pages, key=lambda page: int(page.rpartition("/")[2]))

    async def offer(page: str, on: str, by: Visitor = owner, **typed: str) -> Any:
        form = fields_of((await owner.see(page)).text, f"{page}/offer")
        csrf = {} if by is owner else fields_of((await by.see(page)).text, "/account/logout")
        return await by.web.post(f"{page}/offer", data={**form, **csrf, **typed, "on": on})

    async def is_offered() -> bool:
        return "Change the plan" in (await owner.web.get(portal[1])).text

    assert leads_to(await offer(pro, "yes")) == pro
    assert "offered Take back" in text_of(await owner.see(pro))
    assert await is_offered()
    assert (await offer(pro, "yes", version="999999")).status_code == 404
    for on in ("garbage", ""):
        assert (await offer(pro, on)).status_code == 400
    assert await is_offered()
    of_club = fields_of((await owner.see(club)).text, f"{club}/offer")["version"]
    assert (await offer(pro, "yes", version=of_club)).status_code == 404
    with monkeypatch.context() as limited:
        change(limited, "paydesk.domain.subscriptions.packages", "MOST_OFFERED", 1)
        refused = await offer(club, "yes")
        assert refused.status_code == 409
        assert "1 plan in USD is offered already" in text_of(refused)
        assert leads_to(await offer(pro, "yes")) == pro
    assert leads_to(await offer(pro, "no")) == pro
    assert not await is_offered()
    assert await seller.audited("settings_changed") == [f"package {pro.rpartition('/')[2]}"] * 3
    member = await join(owner, Role.viewer)
    assert "/offer" not in (await member.see(pro)).text
    assert (await offer(pro, "yes", by=member)).status_code == 403
    assert not await is_offered()


async def test_another_merchants_subscriptions_are_not_found(owner: Visitor, seller: Seller, sign_up: SignUp) -> None:
    subscription_id = await subscribe(seller)
    package_id = await seller.database.fetchval(
        "select id from subscription_package where merchant_id = $1", seller.shop.merchant_id
    )
    other = await sign_up("Other Shop")
    for page in (f"/{subscription_id}", f"/{subscription_id}/cancel", f"/packages/{package_id}"):
        assert (await other.see(url(owner, page))).status_code == 404
        assert (await other.see(url(other, page))).status_code == 404
    assert listed((await other.see(url(other, f"?q={subscription_id}"))).text) == []


async def test_a_failing_charge_stands_out(owner: Visitor, seller: Seller) -> None:
    subscription_id = await subscribe(seller)
    again = utc_now() + timedelta(hours=6)
    await breaking.say(seller.database, "subscription", {"id": subscription_id}, failures=2, date_next=again)
    shown = text_of(await owner.see(url(owner, f"/{subscription_id}")))
    assert "Payment failing" in shown
    assert "2 charges failed" in shown
    assert "tried again" in shown
    await breaking.say(seller.database, "subscription", {"id": subscription_id}, failures=0)


@pytest.mark.parametrize("query", ["?q=%00", "?q=" + "9" * 299, "?status=x", "?before=1-2-3", "/packages?before=x"])
async def test_a_hostile_query_never_fails(owner: Visitor, query: str) -> None:
    assert (await owner.see(url(owner, query))).status_code == 200


async def press(owner: Visitor, page: str, **typed: str) -> Any:
    """Open a page that asks, and press its button."""
    asked = await owner.see(page)
    return await owner.web.post(page, data={**fields_of(asked.text, page), **typed})


async def test_it_ends_with_its_period_or_is_kept(owner: Visitor, seller: Seller) -> None:
    page = url(owner, f"/{await subscribe(seller)}")
    assert "Let it end with its period" in (await owner.see(page)).text
    assert "is not charged any more" in text_of(await owner.see(f"{page}/end"))
    assert leads_to(await press(owner, f"{page}/end")) == page
    shown = await owner.see(page)
    assert "that was asked by your team" in text_of(shown)
    assert "Let it end with its period" not in shown.text
    assert "10.00 USD is charged on" in text_of(await owner.see(f"{page}/undo"))
    assert leads_to(await press(owner, f"{page}/undo")) == page
    assert "Let it end with its period" in (await owner.see(page)).text


async def test_its_plan_is_changed_after_a_look_at_what_comes_of_it(owner: Visitor, seller: Seller) -> None:
    await subscribe(seller, "S-2", replace(MONTHLY, name="Tea club", sku_id="tea", price=Decimal("20.00")))
    page = url(owner, f"/{await subscribe(seller)}")
    asked = await owner.see(f"{page}/change")
    (version,) = re.findall(r'<option value="(\d+)">Tea club, 20.00', asked.text)
    wrong = await press(owner, f"{page}/change", version=version, price="0")
    assert wrong.status_code == 400
    assert "greater than 0" in text_of(wrong)
    seen = await press(owner, f"{page}/change", version=version, price="15.00", period="1Y")
    assert seen.status_code == 200
    assert "Its next period is of Tea club, 15.00 USD / year: 15.00 USD is charged on" in text_of(seen)
    assert "it is Tea club" not in text_of(await owner.see(page))
    named = {"version": version, "price": "15.00", "period": "1y", "agreed": "1"}
    assert leads_to(await press(owner, f"{page}/change", **named)) == page
    shown = text_of(await owner.see(page))
    assert "on it is Tea club, 15.00 USD / year: that was asked by your team" in shown
    assert shown.count("15.00 USD") > 5
    assert "15.00 USD" not in text_of(await owner.see(f"{page}/undo"))
    assert leads_to(await press(owner, f"{page}/undo")) == page
    assert "Tea club" not in text_of(await owner.see(page))


async def test_its_plan_is_changed_at_once_where_that_is_chosen(owner: Visitor, seller: Seller) -> None:
    one = await subscribe(seller)
    page = url(owner, f"/{one}")
    longer = await press(owner, f"{page}/change", price="15.00", period="1y", when="now")
    assert longer.status_code == 409
    assert "of another length" in text_of(longer)
    for wrong in ({"when": "soon"}, {"when": "now", "agreed": "0"}, {"version": "tea"}, {"when": "now", "prise": "9"}):
        refused = await press(owner, f"{page}/change", **{"price": "15.00", "agreed": "1", **wrong})
        assert refused.status_code == 400, wrong
        assert re.search(r"none of the choices|no such version|There is no field", text_of(refused)), wrong
    assert "15.00 USD" not in text_of(await owner.see(page)), "what can't be read changes nothing"
    seen = await press(owner, f"{page}/change", price="15.00", when="now")
    assert "at once, 15.00 USD / month: 15.00 USD is charged on" in text_of(seen)
    assert 'name="when" value="now"' in seen.text
    assert "15.00 USD" not in text_of(await owner.see(page))
    assert leads_to(await press(owner, f"{page}/change", price="15.00", when="now", agreed="1")) == page
    assert "15.00 USD / month" in text_of(await owner.see(page))
    assert await seller.audited("subscription_changed") == [f"subscription {one}"]


async def test_the_difference_is_charged_now_once_where_that_is_chosen(owner: Visitor, seller: Seller) -> None:
    one = await subscribe(seller)
    page = url(owner, f"/{one}")
    seen = await press(owner, f"{page}/change", price="30.00", when="charge")
    assert "20.00 USD is charged now for the rest of the period that is paid, and 30.00 USD on" in text_of(seen)
    assert "30.00 USD" not in text_of(await owner.see(page))
    agreed = {**fields_of(seen.text, f"{page}/change"), "agreed": "1"}
    answers = [await owner.web.post(f"{page}/change", data=agreed) for _ in range(2)]
    assert [leads_to(answer) for answer in answers] == [page] * 2
    shown = text_of(await owner.see(page))
    assert "30.00 USD / month" in shown
    assert "20.00 USD" in shown.split("Charged for another plan")[-1]
    assert await seller.audited("subscription_changed") == [f"subscription {one}"]
    paid = "select count(*) from payment where merchant_id = $1 and merchant_order_id like '%:plan-%'"
    assert await seller.database.fetchval(paid, seller.shop.merchant_id) == 1
    less = await press(owner, f"{page}/change", price="5.00", when="charge")
    assert "nothing is charged now, and its next charges settle the" in text_of(less)


async def test_what_was_shown_too_long_ago_or_has_changed_since_is_not_charged(owner: Visitor, seller: Seller) -> None:
    one = await subscribe(seller)
    page = url(owner, f"/{one}")
    seen = await press(owner, f"{page}/change", price="30.00", when="charge")
    agreed = {**fields_of(seen.text, f"{page}/change"), "agreed": "1"}
    old = (datetime.fromisoformat(agreed["at"]) - HELD).isoformat()
    for shown in ({"at": old}, {"at": ""}, {"at": "2027-01-01"}, {"revision": "x"}):
        anew = await owner.web.post(f"{page}/change", data={**agreed, **shown})
        assert "20.00 USD is charged now for the rest of the period" in text_of(anew)
    assert leads_to(await press(owner, f"{page}/change", price="90.00", when="now", agreed="1")) == page
    changed = await owner.web.post(f"{page}/change", data=agreed)
    assert (changed.status_code, "has changed just now" in text_of(changed)) == (409, True)
    paid = "select count(*) from payment where merchant_id = $1 and merchant_order_id like '%:plan-%'"
    assert await seller.database.fetchval(paid, seller.shop.merchant_id) == 0


async def test_the_next_charge_has_the_difference_where_that_is_chosen(owner: Visitor, seller: Seller) -> None:
    page = url(owner, f"/{await subscribe(seller)}")
    wish = {"quantity": "3", "when": "next"}
    seen = await press(owner, f"{page}/change", **wish)
    assert "nothing is charged now, and its next charges settle the 20.00 USD" in text_of(seen)
    assert "50.00 USD is charged on" in text_of(seen)
    assert leads_to(await press(owner, f"{page}/change", **wish, agreed="1")) == page
    shown = text_of(await owner.see(page))
    assert "30.00 USD / month" in shown
    balance = "select balance from subscription where merchant_id = $1"
    assert await seller.database.fetchval(balance, seller.shop.merchant_id) > 19
    for typed in ("0", "30000000000", "1e10"):
        wrong = await press(owner, f"{page}/change", quantity=typed)
        assert f'"{typed}" is not a whole number from 1 to' in text_of(wrong).replace("&quot;", '"'), typed
    assert (wrong.status_code, "is not a whole number from 1 to" in text_of(wrong)) == (400, True)


async def test_another_period_begins_now_where_its_charge_is_chosen(owner: Visitor, seller: Seller) -> None:
    one = await subscribe(seller)
    page = url(owner, f"/{one}")
    seen = await press(owner, f"{page}/change", price="100.00", period="1y", when="charge")
    assert "a new period begins, and 90.00 USD is charged now" in text_of(seen)
    assert "and 100.00 USD on" in text_of(seen)
    agreed = {**fields_of(seen.text, f"{page}/change"), "agreed": "1"}
    assert [leads_to(await owner.web.post(f"{page}/change", data=agreed)) for _ in range(2)] == [page] * 2
    assert "100.00 USD / year" in text_of(await owner.see(page))
    less = await press(owner, f"{page}/change", price="1.00", period="1m", when="charge")
    assert "Nothing is charged now, and 0.00 USD on" in text_of(less)


async def test_a_declined_difference_is_said_on_the_form(owner: Visitor, seller: Seller) -> None:
    page = url(owner, f"/{await subscribe(seller, number='4000000000000341')}")
    seen = await press(owner, f"{page}/change", price="30.00", when="charge")
    agreed = {**fields_of(seen.text, f"{page}/change"), "agreed": "1"}
    declined = await owner.web.post(f"{page}/change", data=agreed)
    assert declined.status_code == 402
    assert "The charge was declined" in text_of(declined)
    again = fields_of(declined.text, f"{page}/change")
    assert again["request_key"] != agreed["request_key"]
    assert "10.00 USD / month" in text_of(await owner.see(page))


async def test_it_is_paused_until_a_day_and_resumed(owner: Visitor, seller: Seller) -> None:
    one = await subscribe(seller)
    page = url(owner, f"/{one}")
    wrong = await press(owner, f"{page}/pause", until="2001-01-01")
    assert wrong.status_code == 400
    assert "Until is not between now and" in text_of(wrong)
    for typed in ("2026-12-01x", "2026-12-011"):
        longer = await press(owner, f"{page}/pause", until=typed)
        assert "until is no day; write it like 2027-03-01" in text_of(longer).replace("Until is", "until is"), typed
        assert f'value="{typed}"' in longer.text, "what was typed stays"
    until = (utc_now() + timedelta(days=50)).date().isoformat()
    assert leads_to(await press(owner, f"{page}/pause", until=until)) == page
    shown = text_of(await owner.see(page))
    assert "Paused by your team until" in shown
    assert "nothing is charged, and nothing is owed." in shown
    assert listed((await owner.see(url(owner))).text) == [str(one)]
    assert "What was left of its period runs on." in text_of(await owner.see(f"{page}/resume"))
    assert leads_to(await press(owner, f"{page}/resume")) == page
    assert "Pause it" in text_of(await owner.see(page))
    assert await seller.audited("subscription_changed") == [f"subscription {one}"] * 2


async def test_changes_are_for_those_who_may_cancel(owner: Visitor, seller: Seller, join: Join) -> None:
    page = url(owner, f"/{await subscribe(seller)}")
    member = await join(owner, Role.viewer)
    csrf = fields_of((await member.see(page)).text, "/account/logout")
    for wish in ("change", "end", "undo", "pause", "resume"):
        assert (await member.see(f"{page}/{wish}")).status_code == 403
        assert (await member.web.post(f"{page}/{wish}", data=csrf)).status_code == 403
