"""Files of transfers for the operator's bank, made, taken, recorded and dropped."""

from __future__ import annotations

import asyncio
import csv
import html
import re
import secrets
from collections.abc import Awaitable
from contextlib import suppress
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from tests import breaking, set_back
from tests.databases import until_waiting
from tests.web.account.conftest import Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import Seller, seller_of
from tests.web.operator.test_operations import payable, payouts_of, post

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.business.profiles import PURPOSE
from paydesk.domain.cells.fencing import fence, lift
from paydesk.domain.ledger.balances import balances
from paydesk.domain.ledger.payouts import Sent, record_payout_on
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.taking_turns import take_turn
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.operations.merchants import resume_merchant, suspend_merchant
from paydesk.domain.operations.payout_files import make_file, queries, sendable
from paydesk.domain.payments.desk import Desk
from paydesk.settings import Settings

FILES = "/operator/payouts/files"
IBAN = "NL91ABNA0417164300"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Those of a deployment that names its own account."""
    return settings.model_copy(update={"payout_name": "Desk Ltd", "payout_iban": "DE89370400440532013000"})


@pytest.fixture
async def seller(desk: Desk, owner: Visitor, database: Database, vault: Vault) -> Seller:
    """A merchant with 100.00 CHF on its live side, and an accepted bank account.

    What earlier tests have left is in files already.
    """
    for left in await sendable(database):
        await make_file(database, COMMAND_LINE, left.currency, secrets.token_hex(16), now=utc_now())
    seller = seller_of(desk, owner)
    merchant_id = seller.shop.merchant_id
    await payable(seller, live=True, currency="CHF")
    sealed = vault.seal(IBAN.encode(), purpose=PURPOSE, merchant_id=merchant_id, row_id=merchant_id)
    account = {"account_holder": "Corner Shop Ltd", "iban_sealed": sealed.blob, "vault_key_id": sealed.key_id}
    await set_back.profile(database, merchant_id, "accepted", **account, iban_last4="4300", decided_at=utc_now())
    return seller


async def make(operator: Visitor, currency: str = "CHF") -> str:
    """Press the button for a currency; the file's page."""
    page = await operator.see(FILES)
    hidden = fields_of(page.text, FILES)
    return leads_to(
        await operator.web.post(
            FILES, data={**hidden, "request": hidden["request"][:32] + currency, "currency": currency}
        )
    )


def reference_of(page: str, merchant_id: int) -> str:
    """What bank statements show of a merchant's transfer in a file, in 35 characters at most."""
    ids = f"{page.rpartition('/')[2]}-{merchant_id}"
    return f"PAYOUT-{ids}" if len(ids) <= 28 else f"P-{ids}"


async def press(operator: Visitor, page: str, what: str) -> httpx.Response:
    hidden = fields_of((await operator.see(page)).text, f"{page}/{what}")
    return await operator.web.post(f"{page}/{what}", data=hidden)


async def test_what_is_available_is_sent_taken_and_recorded_once(operator: Visitor, seller: Seller) -> None:
    assert "1 merchant" in text_of(await operator.see(FILES))
    page = await make(operator)
    assert "CHF" not in text_of(await operator.see(FILES)).partition("Files Amount")[0], "it is in a file"
    taken = await press(operator, page, "csv")
    rows = list(csv.reader(taken.text.splitlines()))
    merchant_id, file_id = seller.shop.merchant_id, page.rpartition("/")[2]
    reference = rows[1][0]
    assert reference.endswith(f"-{file_id}-{merchant_id}")
    assert rows[1] == [reference, "Corner Shop Ltd", IBAN, "100.00", "CHF"]
    assert "attachment" in taken.headers["content-disposition"]
    assert (await press(operator, page, "csv")).content == taken.content
    assert await seller.audited("bank_account_read") == ["bank account"] * 2
    assert await payouts_of(seller) == []
    hidden = fields_of((await operator.see(page)).text, f"{page}/record")
    answers = await asyncio.gather(*(operator.web.post(f"{page}/record", data=hidden) for _ in range(3)))
    assert {answer.status_code for answer in answers} == {303}
    assert await payouts_of(seller) == [("100.00", reference)]
    shown = text_of(await operator.see(page))
    assert "Recorded" in shown
    assert "drop it" not in shown
    assert (await operator.web.post(f"{page}/csv", data=hidden)).status_code == 409
    assert (await operator.web.post(f"{page}/drop", data=hidden)).status_code == 409


async def test_money_is_in_one_file_at_a_time(operator: Visitor, seller: Seller, database: Database) -> None:
    page = await make(operator)
    hidden = fields_of((await operator.see(page)).text, f"{page}/drop")
    again = await operator.web.post(FILES, data={**hidden, "request": "another", "currency": "CHF"})
    assert again.status_code == 409
    by_hand = f"/operator/payouts/{seller.shop.merchant_id}?currency=CHF"
    refused = await post(operator, by_hand, amount="100.00", reference="T-1")
    assert refused.status_code == 409
    assert "is in payout file" in text_of(refused)
    for _ in range(2):
        assert (await operator.web.post(f"{page}/drop", data=hidden)).status_code == 303
    assert (await operator.web.post(f"{page}/csv", data=hidden)).status_code == 409
    assert (await operator.web.post(f"{page}/record", data=hidden)).status_code == 409
    assert (await make(operator)) != page


async def test_a_form_that_comes_twice_makes_one_file(operator: Visitor, seller: Seller) -> None:
    hidden = fields_of((await operator.see(FILES)).text, FILES)
    both = [await operator.web.post(FILES, data={**hidden, "currency": "CHF"}) for _ in range(2)]
    assert leads_to(both[0]) == leads_to(both[1])
    stranger = await operator.web.post(FILES, data={**hidden, "currency": "CHF", "amount": "1"})
    assert stranger.status_code == 400


async def test_a_file_for_an_account_that_has_changed_is_not_sent(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    page = await make(operator)
    await breaking.say(database, "business_profile", {"merchant_id": seller.shop.merchant_id}, decided_at=utc_now())
    refused = await press(operator, page, "csv")
    assert refused.status_code == 409
    assert "is not the one any more" in text_of(refused)
    assert await seller.audited("bank_account_read") == []
    assert "Another bank account since" in text_of(await operator.see(page))
    assert (await press(operator, page, "drop")).status_code == 303


async def test_who_is_suspended_since_is_sent_nothing(operator: Visitor, seller: Seller, database: Database) -> None:
    page, merchant_id = await make(operator), seller.shop.merchant_id
    await suspend_merchant(database, COMMAND_LINE, merchant_id, reason="a fraud", now=utc_now())
    refused = await press(operator, page, "csv")
    assert refused.status_code == 409
    assert f"Merchant {merchant_id} is suspended" in text_of(refused)
    assert await seller.audited("bank_account_read") == []
    await resume_merchant(database, COMMAND_LINE, merchant_id, now=utc_now())
    assert (await press(operator, page, "csv")).status_code == 200


async def test_who_goes_to_another_cell_is_paid_from_there(seller: Seller, database: Database) -> None:
    merchant_id = seller.shop.merchant_id

    async def is_sent() -> bool:
        return merchant_id in [one["merchant_id"] async for one in queries.may_be_sent(database, currency="CHF")]

    assert await is_sent()
    await fence(database, merchant_id, other_cell=2, tables=GUARDED)
    assert not await is_sent()
    await lift(database, merchant_id, tables=GUARDED)
    assert await is_sent()


async def test_what_can_not_be_recorded_says_why_and_stays_open(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    page = await make(operator)
    merchant_id = seller.shop.merchant_id
    reference = reference_of(page, merchant_id)
    async with database.acquire() as connection, connection.transaction():
        other = Sent(Decimal("60.00"), "CHF", reference, "command", despite_wait="it was sent")
        await record_payout_on(connection, Shop(merchant_id, live=True), other, now=utc_now())
    refused = await press(operator, page, "record")
    assert refused.status_code == 409
    assert "1 transfer could not be recorded" in text_of(refused)
    assert "has this reference already" in text_of(refused)
    assert "Open" in text_of(await operator.see(page))
    assert await payouts_of(seller) == [("60.00", reference)]


async def test_what_the_bank_has_sent_to_who_is_suspended_since_is_recorded(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    """The money is gone: an open transfer would say that it may be on its way."""
    page, merchant_id = await make(operator), seller.shop.merchant_id
    assert (await press(operator, page, "csv")).status_code == 200
    await suspend_merchant(database, COMMAND_LINE, merchant_id, reason="a fraud", now=utc_now())
    assert "Suspended" in text_of(await operator.see(page))
    assert (await press(operator, page, "record")).status_code == 303
    assert [amount for amount, _ in await payouts_of(seller)] == ["100.00"]
    assert "Recorded" in text_of(await operator.see(page))
    by_hand = Sent(Decimal("0.01"), "CHF", "T-1", "command", despite_wait="it was sent")
    async with database.acquire() as connection, connection.transaction():
        with pytest.raises(Conflict, match="is suspended"):
            await record_payout_on(connection, Shop(merchant_id, live=True), by_hand, now=utc_now())


async def test_what_was_not_sent_to_who_is_suspended_since_is_dropped_and_in_no_other_file(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    page, merchant_id = await make(operator), seller.shop.merchant_id
    await suspend_merchant(database, COMMAND_LINE, merchant_id, reason="a fraud", now=utc_now())
    hidden = fields_of((await operator.see(page)).text, f"{page}/drop")
    assert (await press(operator, page, "drop")).status_code == 303
    again = await operator.web.post(FILES, data={**hidden, "request": "another", "currency": "CHF"})
    assert again.status_code == 409
    assert await payouts_of(seller) == []
    # If the bank has it after all, the form says which transfer it is: so none counts twice.
    [form] = re.findall(rf'href="(/operator/payouts/{merchant_id}\?[^"]+)"', (await operator.see(page)).text)
    filled = (await operator.see(html.unescape(form))).text
    assert 'value="100.00"' in filled
    assert f'value="{reference_of(page, merchant_id)}"' in filled


async def test_what_the_bank_has_sent_is_recorded_though_less_is_available_by_now(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    page, shop = await make(operator), Shop(seller.shop.merchant_id, live=True)
    async with database.acquire() as connection, connection.transaction():
        taken = Sent(Decimal("60.00"), "CHF", "T-1", "command", despite_wait="it stands for a chargeback")
        await record_payout_on(connection, shop, taken, now=utc_now())
    assert (await press(operator, page, "record")).status_code == 303
    assert [amount for amount, _ in await payouts_of(seller)] == ["60.00", "100.00"]
    [left] = [one.available for one in await balances(database, shop) if one.currency == "CHF"]
    assert left == Decimal("-59.9951")
    assert "Recorded" in text_of(await operator.see(page))


async def meanwhile(database: Database, asked: Awaitable[httpx.Response]) -> asyncio.Task[httpx.Response]:
    """Something is asked for, and has come as far as it can."""
    task = asyncio.ensure_future(asked)
    await until_waiting(database, task)
    return task


async def test_what_is_being_paid_out_by_hand_comes_into_no_file(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    shop = Shop(seller.shop.merchant_id, live=True)
    by_hand = Sent(Decimal("100.00"), "CHF", "T-1", "command", despite_wait="it was sent")
    hidden = fields_of((await operator.see(FILES)).text, FILES)
    async with database.acquire() as connection, connection.transaction():
        await record_payout_on(connection, shop, by_hand, now=utc_now())
        making = await meanwhile(database, operator.web.post(FILES, data={**hidden, "currency": "CHF"}))
    assert (await making).status_code == 409, "the bank would send it a second time"
    assert await payouts_of(seller) == [("100.00", "T-1")]


async def test_a_form_that_comes_twice_at_once_makes_one_file(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    hidden = fields_of((await operator.see(FILES)).text, FILES)
    async with database.acquire() as connection, connection.transaction():
        await take_turn(connection, seller.shop.merchant_id)
        both = [asyncio.ensure_future(operator.web.post(FILES, data={**hidden, "currency": "CHF"})) for _ in range(2)]
        await until_waiting(database, *both)
    assert leads_to(await both[0]) == leads_to(await both[1])


async def test_what_is_dropped_while_it_is_recorded_is_one_of_both(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    page = await make(operator)
    hidden = fields_of((await operator.see(page)).text, f"{page}/drop")
    async with database.acquire() as connection, connection.transaction():
        await take_turn(connection, seller.shop.merchant_id)
        recording = await meanwhile(database, operator.web.post(f"{page}/record", data=hidden))
        dropped = await operator.web.post(f"{page}/drop", data=hidden)
    recorded = await recording
    assert (dropped.status_code, recorded.status_code) in ((303, 409), (409, 303))
    sent = recorded.status_code == 303
    assert len(await payouts_of(seller)) == sent
    assert ("Recorded" if sent else "Dropped") in text_of(await operator.see(page))


async def test_a_transfer_is_a_payout_only_together_with_its_line(
    operator: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies over it has recorded both or neither, so that what is recorded is
    never dropped.
    """

    async def dies(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    page = await make(operator)
    hidden = fields_of((await operator.see(page)).text, f"{page}/record")
    with monkeypatch.context() as broken, suppress(BaseException):
        broken.setattr(queries, "recorded", dies)
        await operator.web.post(f"{page}/record", data=hidden)
    assert await payouts_of(seller) == []
    assert (await press(operator, page, "record")).status_code == 303
    assert len(await payouts_of(seller)) == 1


async def test_euros_are_written_for_sepa_once_our_account_is_known(operator: Visitor, seller: Seller) -> None:
    await payable(seller, live=True, currency="EUR")
    page = await make(operator, "EUR")
    assert "SEPA file" in text_of(await operator.see(page))
    taken = await press(operator, page, "sepa")
    assert taken.headers["content-type"] == "application/xml"
    names = {"": "urn:iso:std:iso:20022:tech:xsd:pain.001.001.09"}
    file = ElementTree.fromstring(taken.text)
    assert IBAN in [one.text for one in file.iterfind(".//CdtrAcct/Id/IBAN", names)]
    other = await make(operator)
    hidden = fields_of((await operator.see(other)).text, f"{other}/csv")
    assert (await operator.web.post(f"{other}/sepa", data=hidden)).status_code == 409
