"""What an owner does about a dispute, in a browser: find it, read why, write, send; axe too."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect
from tests import set_back
from tests.core.documents import hostile
from tests.e2e.looks import flaws
from tests.e2e.test_account_getting_in import SignUp, base, complaints, sign_up
from tests.lengths import long
from tests.web.account.selling import Seller

from paydesk.core.clock import utc_now
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

__all__ = ["base", "complaints", "sign_up"]

pytestmark = pytest.mark.browser

CHARGED_BACK = "4000000000000259"


@long
async def test_a_dispute_is_found_understood_and_answered_once(
    sign_up: SignUp, desk: Desk, complaints: list[str]
) -> None:
    page, _ = await sign_up()
    path = re.sub(r"(/account/\d+).*", r"\1", page.url)
    seller = Seller(desk, Shop(int(path.rsplit("/", 1)[1]), live=False))
    await set_back.banks_tell_again(desk.database)
    await seller.sell("A-17", amount="24.90", number=CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    await page.get_by_role("link", name="Disputes", exact=True).first.click()
    row = page.get_by_role("row").filter(has_text="A-17")
    await expect(row).to_contain_text("7 days left")
    wrong = await flaws(page)
    await row.get_by_role("link").click()
    evidence = page.get_by_label("Evidence")
    await expect(evidence).to_have_value(re.compile("Order A-17"))
    wrong += await flaws(page)
    await evidence.fill("The parcel was signed for on 3 March.")
    await page.get_by_role("button", name="Save the draft").click()
    await expect(page.get_by_text("The draft is saved.")).to_be_visible()
    await expect(evidence).to_have_value("The parcel was signed for on 3 March.")
    await page.get_by_label("Add a file").set_input_files(
        {"name": "note.pdf", "mimeType": "application/pdf", "buffer": hostile()}
    )
    await page.get_by_label("What the file shows").select_option("delivery")
    await page.get_by_role("button", name="Save the draft").click()
    file = page.get_by_role("list", name="Files").get_by_role("link", name="note.pdf")
    await expect(file).to_be_visible()
    wrong += await flaws(page)
    async with page.expect_download() as downloading:
        await file.click()
    saved = await (await downloading.value).path()
    assert saved.read_bytes().startswith(b"%PDF-")
    await page.get_by_role("button", name="Send to the bank").click()
    await expect(page.get_by_text("The bank has it")).to_be_visible()
    await expect(page.get_by_label("Evidence")).to_have_count(0)
    await expect(file).to_be_visible()
    wrong += await flaws(page)
    assert wrong == []
    assert complaints == []
