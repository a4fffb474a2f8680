"""Requests to go live, as operators answer them."""

from __future__ import annotations

from tests import breaking, set_back
from tests.web.account.conftest import Visitor, fields_of, leads_to, text_of
from tests.web.operator.test_merchants import merchant_id_of

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database


async def submit(owner: Visitor, database: Database) -> int:
    """A profile that its owner has handed in."""
    merchant_id = merchant_id_of(owner)
    await database.execute(
        "insert into business_profile (merchant_id, status, legal_name, street, postal_code, city, country, website,"
        " support_email, description, goods, account_holder, iban_last4, changed_at, submitted_at)"
        " values ($1, 'submitted', 'Corner Shop Ltd', 'High Street 1', 'N1', 'London', 'GB', 'https://shop.example',"
        " 'help@shop.example', 'We sell <b>mugs</b>', 'Mugs, by post', 'Corner Shop Ltd', '3000', $2, $2)",
        merchant_id,
        utc_now(),
    )
    return merchant_id


async def test_an_accepted_profile_lets_the_merchant_go_live(
    operator: Visitor, owner: Visitor, database: Database
) -> None:
    merchant_id = await submit(owner, database)
    assert f"/operator/profiles/{merchant_id}" in (await operator.see("/operator/profiles")).text
    page = f"/operator/profiles/{merchant_id}"
    shown = await operator.see(page)
    assert "We sell <b>mugs</b>" in text_of(shown)
    assert "•••• 3000" in text_of(shown)
    await set_back.password_long_ago(database)
    assert 'name="_password"' in (await operator.send(page, f"{page}/accept")).text
    assert not await database.fetchval("select went_live_at is not null from merchant where id = $1", merchant_id)
    await set_back.times(database, "account_session", {}, confirmed_at=utc_now())
    assert leads_to(await operator.send(page, f"{page}/accept")) == "/operator/profiles"
    assert await database.fetchval("select went_live_at is not null from merchant where id = $1", merchant_id)
    token = fields_of((await operator.see("/account/security")).text, "/account/logout")
    seen = fields_of(shown.text, f"{page}/accept")["seen"]
    again = await operator.web.post(f"{page}/accept", data={**token, "seen": seen})
    assert again.status_code == 409


async def test_what_is_missing_is_named_and_accepted_with_a_reason_alone(
    operator: Visitor, owner: Visitor, database: Database
) -> None:
    merchant_id = await submit(owner, database)
    await breaking.say(database, "business_profile", {"merchant_id": merchant_id}, city="", website="")
    page = f"/operator/profiles/{merchant_id}"
    assert "Still missing: City, Website" in text_of(await operator.see(page))
    refused = await operator.send(page, f"{page}/accept", despite=" ")
    assert refused.status_code == 400
    assert "the profile lacks city, website" in text_of(refused).lower()
    live = "select went_live_at is not null from merchant where id = $1"
    assert not await database.fetchval(live, merchant_id)
    assert await database.fetchval("select status from business_profile where merchant_id = $1", merchant_id) == (
        "submitted"
    )
    assert leads_to(await operator.send(page, f"{page}/accept", despite="Seen at the register")) == "/operator/profiles"
    assert await database.fetchval(live, merchant_id)
    said = "select details::text from audit_entry where merchant_id = $1 and action = 'go_live_approved'"
    assert "Seen at the register" in await database.fetchval(said, merchant_id)


async def test_a_refused_profile_comes_back_with_the_reason(
    operator: Visitor, owner: Visitor, database: Database
) -> None:
    page = f"/operator/profiles/{await submit(owner, database)}"
    assert (await operator.send(page, f"{page}/refuse", reason="")).status_code == 400
    assert leads_to(await operator.send(page, f"{page}/refuse", reason="The website is empty")) == "/operator/profiles"
    assert "The website is empty" in text_of(await owner.see(f"{owner.merchant_path}/settings/profile"))


async def test_a_profile_that_nobody_wrote_is_shown_as_empty(operator: Visitor, owner: Visitor) -> None:
    shown = await operator.see(f"/operator/profiles/{merchant_id_of(owner)}")
    assert "Being written" in text_of(shown)
    assert "/accept" not in shown.text
    assert (await operator.see("/operator/profiles/900719925474099")).status_code == 404
