"""A newcomer's hour: from the sign-up to a private key, a test payment and the guide."""

from __future__ import annotations

import re
import secrets

from playwright.async_api import Page, expect
from tests.e2e.walking import PHONE, Walk, press, sees, step

PASSWORD = "correct horse battery staple"


async def sign_up(page: Page, walk: Walk) -> str:
    """Open an account; where it is."""
    await page.goto(f"{walk.running.address}/account/signup")
    await page.get_by_label("Name of your shop").fill("Corner Shop")
    await page.get_by_label("Your name").fill("Ada Lovelace")
    await page.get_by_label("E-mail address").fill(f"ada-{secrets.token_hex(4)}@corner.example")
    await page.get_by_label("Password").fill(PASSWORD)
    await press(page, "Open the account")
    await page.wait_for_url(re.compile(r"/account/\d+/"))
    found = re.match(r".*/account/\d+", page.url)
    assert found is not None
    return found[0]


async def shown_keys(page: Page) -> tuple[str, str]:
    """The public and the private key of the one page that shows both."""
    await page.get_by_label("Private key", exact=True).wait_for()
    public, private = [await page.get_by_label(name, exact=True).inner_text() for name in ("Public key", "Private key")]
    return public, private


async def say_the_business(page: Page, account: str) -> None:
    """Fill in the first step of the business profile: four of its eleven answers."""
    await page.goto(f"{account}/settings/profile")
    for label, text in (
        ("Legal name", "Corner Shop Ltd"),
        ("Website", "https://corner.example"),
        ("What the business does", "A shop for tea and what belongs to it."),
        ("What you sell, and how it is delivered", "Tea and mugs, by parcel."),
    ):
        await page.get_by_label(label).fill(text)
    await press(page, "Save this step")


@step("newcomer")
async def sign_up_page(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/account/signup")


@step("newcomer")
async def keys_are_shown_once(page: Page, walk: Walk) -> None:
    """Right after the sign-up, each with a button that copies it."""
    await sign_up(page, walk)
    await press(page, "Show my keys")
    await sees(page, "Private key", "Public key")
    await expect(page.locator("main [data-copy]").locator("visible=true")).to_have_count(2)
    await expect(page.get_by_text("old keys")).to_have_count(0)


@step("newcomer")
async def first_day_is_a_checklist(page: Page, walk: Walk) -> None:
    account = await sign_up(page, walk)
    await page.goto(f"{account}/overview")
    await sees(page, "Your first day", "Open a test checkout", "Say who you are")


@step("newcomer")
async def what_is_done_is_ticked(page: Page, walk: Walk) -> None:
    """Of the list: the keys were seen, and a test checkout was opened."""
    account = await sign_up(page, walk)
    await press(page, "Show my keys")
    await page.goto(f"{account}/overview")
    await press(page, "Open a test checkout")
    await page.wait_for_url("**/checkout/**")
    await page.goto(f"{account}/overview")
    await sees(page, "2 of 7 done")
    await expect(page.locator(".day-step.done")).to_have_count(2)


@step("newcomer", PHONE, scheme="dark")
async def first_day_on_a_phone(page: Page, walk: Walk) -> None:
    account = await sign_up(page, walk)
    await page.goto(f"{account}/overview")
    await sees(page, "Your first day")


@step("newcomer")
async def a_test_checkout_without_code(page: Page, walk: Walk) -> None:
    account = await sign_up(page, walk)
    await page.goto(f"{account}/overview")
    await press(page, "Open a test checkout")
    await page.wait_for_url("**/checkout/**")
    await sees(page, "Corner Shop")


@step("newcomer")
async def live_without_data_says_what_is_missing(page: Page, walk: Walk) -> None:
    account = await sign_up(page, walk)
    await page.goto(f"{account}/overview")
    await page.get_by_role("switch").or_(page.get_by_role("button", name=re.compile("View"))).first.click()
    await sees(page, "0 of 11")


@step("newcomer")
async def live_with_a_part_of_the_profile(page: Page, walk: Walk) -> None:
    """How much of it is there, and the way to the rest."""
    account = await sign_up(page, walk)
    await say_the_business(page, account)
    await page.goto(f"{account}/overview")
    await page.get_by_role("switch").or_(page.get_by_role("button", name=re.compile("View"))).first.click()
    await sees(page, "Profile: 4 of 11", "Go to the business profile")


@step("newcomer")
async def a_step_of_the_profile_is_ticked(page: Page, walk: Walk) -> None:
    account = await sign_up(page, walk)
    await say_the_business(page, account)
    steps = page.get_by_role("navigation", name="Steps of the profile").get_by_role("link")
    await expect(steps.filter(has_text="Done:")).to_have_count(1)
    await expect(steps).to_have_count(4)


@step("newcomer")
async def profile_in_four_steps(page: Page, walk: Walk) -> None:
    account = await sign_up(page, walk)
    await page.goto(f"{account}/settings/profile")
    await expect(page.locator("main h1")).to_be_visible()


@step("newcomer")
async def a_private_address_is_warned_of(page: Page, walk: Walk) -> None:
    """As a URL for pingbacks, with the setting that lets it."""
    account = await sign_up(page, walk)
    await page.goto(f"{account}/developers")
    await page.get_by_label(re.compile("pingback URL", re.IGNORECASE)).first.fill("http://192.168.1.7/pingback")
    await page.get_by_label(re.compile("pingback URL", re.IGNORECASE)).first.press("Enter")
    await sees(page, "PAYDESK_OUTBOUND_ALLOW")


@step()
async def the_guide(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/docs")


@step(screen=PHONE, scheme="dark")
async def the_guide_on_a_phone(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/docs/a-first-checkout-with-curl")
    await expect(page.get_by_role("heading", name="A first checkout with curl")).to_be_visible()


@step()
async def samples_of_events(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/docs")
    await press(page, "Events with samples")
    await sees(page, "chargeback_reversed")


@step("owner")
async def the_guide_has_the_readers_keys(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/docs/a-first-checkout-with-curl")
    await sees(page, walk.running.public_key)


@step()
async def the_api_in_four_languages(page: Page, walk: Walk) -> None:
    """The API reference: request and answer in curl, PHP, Python and Node."""
    await page.goto(f"{walk.running.address}/api/docs")
    await sees(page, "curl", "PHP", "Python", "Node")


@step()
async def the_guide_is_searched(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/docs")
    await page.get_by_role("searchbox").first.fill("refund")
    await page.keyboard.press("Enter")
    await sees(page, "refund")


@step("owner")
async def a_whole_subscription_program(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/developers/code")
    await page.get_by_text("Python, subscriptions").click()
    await sees(page, "club.py")


@step()
async def the_mailbox(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/mailbox")


@step("owner", PHONE)
async def the_view_is_called_what_it_is(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/payments")
    await sees(page, "Test data")
