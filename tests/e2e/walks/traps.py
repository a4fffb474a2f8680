"""Where people once fell in: disputes, refunds, dead ends, signatures that are wrong."""

from __future__ import annotations

import hashlib
import io
import re

from PIL import Image
from playwright.async_api import Page, expect
from tests.core.documents import hostile
from tests.e2e.month import DECLINED
from tests.e2e.running import fill_in
from tests.e2e.walking import PHONE, Walk, press, sees, step
from tests.e2e.walks.first_hour import shown_keys, sign_up

from paydesk_client import Gateway


def picture() -> bytes:
    """A photograph of a parcel, as a camera leaves it."""
    kept = io.BytesIO()
    Image.new("RGB", (640, 480), "#b08d57").save(kept, "JPEG", exif=Image.Exif())
    return kept.getvalue()


async def open_dispute(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/disputes")
    await page.locator("main .whole-row").first.click()
    await page.get_by_label("Evidence").wait_for()


@step("owner")
async def disputes_are_listed(page: Page, walk: Walk) -> None:
    """With the days left and the reason in plain words."""
    await page.goto(f"{walk.account}/overview")
    await page.get_by_role("link", name="Disputes", exact=True).first.click()
    await sees(page, "days left")


@step("owner", PHONE, scheme="dark")
async def disputes_on_a_phone(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/disputes")
    await sees(page, "days left")


@step("owner")
async def evidence_is_ready_to_send(page: Page, walk: Walk) -> None:
    """What is known already stands there: the order, delivery, consent, receipts, addresses."""
    await open_dispute(page, walk)
    await expect(page.get_by_label("Evidence")).to_have_value(re.compile("Order order-"))


@step("owner")
async def evidence_takes_files(page: Page, walk: Walk) -> None:
    """A picture drawn anew and a PDF written anew, both to download, in a draft."""
    await open_dispute(page, walk)
    for name, kind, content, shows in (
        ("parcel.jpg", "image/jpeg", picture(), "delivery"),
        ("note.pdf", "application/pdf", hostile(), "messages"),
    ):
        await page.get_by_label("Add a file").set_input_files({"name": name, "mimeType": kind, "buffer": content})
        await page.get_by_label("What the file shows").select_option(shows)
        await press(page, "Save the draft")
        await expect(page.get_by_role("list", name="Files").get_by_role("link", name=name)).to_be_visible()


@step("owner")
async def evidence_refuses_what_is_no_file(page: Page, walk: Walk) -> None:
    await open_dispute(page, walk)
    await page.get_by_label("Add a file").set_input_files(
        {"name": "page.pdf", "mimeType": "application/pdf", "buffer": b"<html>no PDF</html>"}
    )
    await press(page, "Save the draft")
    await expect(page.locator(".invalid-feedback, [role=alert]").first).to_be_visible()


@step("operator")
async def operators_see_the_dispute(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/operator/chargebacks")
    await page.get_by_role("link", name=re.compile("test", re.IGNORECASE)).first.click()
    await page.locator("main .whole-row").first.click()
    await page.wait_for_url("**/chargebacks/*/*")
    await sees(page, "Evidence")


@step("owner")
async def evidence_is_sent(page: Page, walk: Walk) -> None:
    await open_dispute(page, walk)
    await press(page, "Send to the bank")
    await sees(page, "The bank has it")


@step("owner")
async def refund_leaves_the_amount_empty(page: Page, walk: Walk) -> None:
    """The amount of a part is empty; all of it is another button."""
    await page.goto(f"{walk.account}/payments/{walk.shop.newest_payment()}")
    await expect(page.get_by_label(re.compile("Amount in"))).to_have_value("")
    await sees(page, "Refund all")


@step("owner")
async def refund_is_confirmed(page: Page, walk: Walk) -> None:
    """How much, in which currency, to which card."""
    await page.goto(f"{walk.account}/payments/{walk.shop.newest_payment()}")
    await page.get_by_role("button", name=re.compile("Refund all")).click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile(r"Refund .* to .* ••••\s\d{4}"))


@step(screen=PHONE)
async def no_more_attempts(page: Page, walk: Walk) -> None:
    """No form is left, but one button back to the shop."""
    _, checkout = walk.shop.order("coffee")
    await page.goto(walk.running.address + checkout)
    while not page.url.endswith("/stopped"):
        await fill_in(page, DECLINED)
        await page.get_by_role("button", name=re.compile("^Pay")).click()
        declined = page.get_by_role("alert").filter(has_text="declined")
        await declined.or_(page.get_by_role("heading", name="Too many attempts")).first.wait_for()
    await expect(page.locator("main form")).to_have_count(0)
    await expect(page.get_by_role("link", name=re.compile("^Back to"))).to_be_visible()


@step(screen=PHONE)
async def a_suspended_shop(page: Page, walk: Walk) -> None:
    """No form, but one button back to the shop."""
    live = await walk.live_shop()
    await page.set_content(signed(live.gateway))
    await press(page, "Pay")
    await page.wait_for_url("**/checkout/*")
    await walk.ask(walk.running.command, "merchant", "suspend", str(live.merchant_id), "--reason", "a look at it")
    await page.reload()
    await walk.ask(walk.running.command, "merchant", "resume", str(live.merchant_id))
    await expect(page.locator("main form")).to_have_count(0)
    await expect(page.get_by_role("link", name=re.compile("^Back to"))).to_be_visible()


@step()
async def not_found(page: Page, walk: Walk) -> None:
    answer = await page.goto(f"{walk.running.address}/checkout/nothing-here")
    assert answer is not None
    assert answer.status == 404
    await expect(page.locator("main a").first).to_be_visible()


@step(screen=PHONE)
async def the_money_was_given_back(page: Page, walk: Walk) -> None:
    """409: no form is left, but the way back to the shop."""
    _, checkout = walk.shop.order("coffee")
    await page.goto(walk.running.address + checkout)
    await fill_in(page, "4242424242424242")
    await page.get_by_role("button", name=re.compile("^Pay")).click()
    await page.wait_for_url(re.compile(r"/thanks"))
    await walk.ask(walk.shop.call, f"/payment/{walk.shop.newest_payment()}/refund", {"amount": "10.00"})
    answer = await page.goto(walk.running.address + checkout)
    assert answer is not None
    assert answer.status == 409
    await expect(page.locator("main form")).to_have_count(0)
    await expect(page.get_by_role("link", name=re.compile("^Back to"))).to_be_visible()


@step()
async def too_many_forms(page: Page, walk: Walk) -> None:
    """429, with the way back."""
    words = ("merchant", "create", "--name", "Busy Shop", "--email", "owner@busy.example")
    made = await walk.ask(walk.running.command, *words)
    gateway = Gateway(made["public_key"], made["private_key"], base_url=walk.running.address)
    fields: dict[str, str | float | bool] = {"api_key": gateway.public_key, "amount": "1.00"}
    while (await page.request.post(gateway.payment_form().action, form=fields)).status != 429:
        pass
    await page.set_content(signed(gateway))
    await press(page, "Pay")
    await sees(page, "429")
    await expect(page.get_by_role("button", name="Go back")).to_be_visible()


@step()
async def the_root_leads_somewhere(page: Page, walk: Walk) -> None:
    await page.goto(walk.running.address)
    await expect(page.get_by_role("link", name=re.compile("Log in|Open an account")).first).to_be_visible()


@step()
async def a_form_sent_to_an_address_that_nearly_exists(page: Page, walk: Walk) -> None:
    """Whoever programs it reads what is meant."""
    await page.set_content(
        f'<form method="post" action="{walk.running.address}/sandbox/sandbox/payment/form/"><button>Pay</button></form>'
    )
    await press(page, "Pay")
    await sees(page, "/sandbox/payment/form")


@step("owner")
async def send_again_says_where(page: Page, walk: Walk) -> None:
    """The URL of now, and another one if wished."""
    await page.goto(f"{walk.account}/pingbacks")
    await page.locator("main .whole-row").first.click()
    await sees(page, "Sent again it goes to")
    await page.get_by_text("Send it to another URL").click()
    await expect(page.get_by_label("URL", exact=True)).to_be_visible()


def signed(gateway: Gateway, **changed: str) -> str:
    """A page with a shop's form, signed, and changed after that."""
    form = gateway.payment_form()
    fields = form.build_parameters(
        {
            "merchant_order_id": "A-17",
            "amount": "10.00",
            "currency": "USD",
            "description": "A mug",
            "success_url": "https://shop.example/thanks",
            "sign_version": "v2",
        }
    )
    inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in {**fields, **changed}.items())
    return f'<form method="post" action="{form.action}">{inputs}<button>Pay</button></form>'


async def post_form(page: Page, walk: Walk, **changed: str) -> None:
    """The sample shop's form, which was changed after signing."""
    running = walk.running
    await page.set_content(
        signed(Gateway(running.public_key, running.private_key, base_url=running.address), **changed)
    )
    await press(page, "Pay")


@step()
async def wrong_hash_says_both(page: Page, walk: Walk) -> None:
    """The wrong key, or a value changed after signing; and the string that was hashed."""
    await post_form(page, walk, amount="12.00")
    await sees(page, "Likely culprit", "The server hashed exactly this string")


@step("newcomer")
async def a_hash_of_another_pair(page: Page, walk: Walk) -> None:
    """The new public key, and the private one of the pair before it."""
    account = await sign_up(page, walk)
    await press(page, "Show my keys")
    old_public, old_private = await shown_keys(page)
    await page.goto(f"{account}/developers/keys")
    await press(page, "Make new keys")
    public, _ = await shown_keys(page)
    await page.set_content(signed(Gateway(public, old_private, base_url=walk.running.address)))
    await press(page, "Pay")
    await sees(page, "the private key of another pair of this account", old_public)
    assert old_private not in await page.content()


@step("owner")
async def refused_forms_show_the_string(page: Page, walk: Walk) -> None:
    await post_form(page, walk, amount="13.00")
    await page.goto(f"{walk.account}/developers/refused")
    await page.locator("main summary").first.click()
    await sees(page, "What was signed")


@step()
async def a_private_key_as_api_key_is_not_printed(page: Page, walk: Walk) -> None:
    await post_form(page, walk, api_key=walk.running.private_key)
    await sees(page, "For the shop’s programmer")
    assert walk.running.private_key not in await page.content()


@step()
async def a_hash_of_nobodys_key(page: Page, walk: Walk) -> None:
    """Neither the key nor a change explains it."""
    await post_form(page, walk, hash=hashlib.sha256(b"x").hexdigest())
    await sees(page, "The server hashed exactly this string")
