"""Who has an account in another cell takes its address by a link that they follow logged in."""

from __future__ import annotations

from tests.web.account.conftest import Visitor, leads_to, text_of
from tests.web.cells.people import account, gate_of
from tests.web.cells.two_cells import HOME, SECOND, Cells

from paydesk.core.clock import utc_now
from paydesk.domain.accounts.tokens import Purpose, add_token
from paydesk.domain.cells.directory import cells_of_person, enter
from paydesk.domain.cells.entering import email_to_enter


async def test_who_is_logged_in_takes_the_address_of_their_account_elsewhere(cells: Cells) -> None:
    """The link alone says no more than whose address it is."""
    home, database = cells.databases[HOME], cells.databases[SECOND]
    await account(cells, HOME, "new@shop.example")
    await enter(home, [email_to_enter(cells.vault, "new@shop.example")], HOME, now=utc_now())
    there = (await account(cells, SECOND, "old@shop.example")).visitor
    person = await database.fetchval("select id from person where email = $1", there.email)
    _, token = await add_token(
        database, gate_of(cells, SECOND), person, Purpose.email, email="new@shop.example", now=utc_now()
    )
    link = f"/account/email/{token}"
    refused = await Visitor(await cells.open(SECOND), there.client).send(link)
    assert (refused.status_code, "Another account has this address" in text_of(refused)) == (409, True)
    assert leads_to(await there.send(link)) == "/account"
    found = await cells_of_person(home, cells.vault, "new@shop.example")
    assert [one.number for one in found] == [HOME, SECOND]
