import pytest
from tests import set_back
from tests.web.account.conftest import Join, Visitor, leads_to, text_of

from paydesk.database.pool import Database
from paydesk.domain.accounts.roles import Role
from paydesk.domain.merchants.merchant import find_merchant


async def toggle(visitor: Visitor, path: str = "") -> str:
    return leads_to(await visitor.send("/account/security", f"{path or visitor.merchant_path}/mode"))


@pytest.fixture
async def live_since_yesterday(owner: Visitor, database: Database) -> int:
    """The owner's merchant, which has gone live and takes real payments."""
    merchant_id = int(owner.merchant_path.split("/")[2])
    await set_back.went_live(database, merchant_id)
    return merchant_id


async def test_test_data_are_marked_on_every_page_until_the_toggle_is_switched(owner: Visitor) -> None:
    assert "Nothing on this page is real money" in text_of(await owner.see("/account/security"))
    assert await toggle(owner) == "/account/security"
    shown = text_of(await owner.see("/account/security"))
    assert "Nothing on this page is real money" not in shown
    assert "There are none until this merchant goes live" in shown
    await toggle(owner)
    assert "Nothing on this page is real money" in text_of(await owner.see("/account/security"))


async def test_who_decides_for_customers_is_asked_first(
    owner: Visitor, live_since_yesterday: int, database: Database
) -> None:
    await owner.send("/account/security", f"{owner.merchant_path}/mode")
    asked = await owner.send("/account/security", f"{owner.merchant_path}/mode")
    assert "switch the shop to test mode too?" in text_of(asked)
    assert not (await find_merchant(database, live_since_yesterday)).test_mode
    token = {"csrf": asked.text.split('name="csrf" value="')[1].split('"')[0], "live": "0", "back": "/account/security"}
    await owner.web.post(f"{owner.merchant_path}/mode/take", data=token)
    assert (await find_merchant(database, live_since_yesterday)).test_mode
    audited = await database.fetchval(
        "select count(*) from audit_entry where merchant_id = $1 and action = 'test_mode_changed'", live_since_yesterday
    )
    assert audited == 1


@pytest.mark.parametrize("role", [Role.support, Role.viewer])
async def test_who_does_not_decide_only_looks(
    owner: Visitor, join: Join, role: Role, live_since_yesterday: int, database: Database
) -> None:
    member = await join(owner, role)
    await member.see(owner.merchant_path)
    await toggle(member, owner.merchant_path)
    await toggle(member, owner.merchant_path)
    assert not (await find_merchant(database, live_since_yesterday)).test_mode


async def test_a_shop_that_is_not_live_cannot_leave_test_mode(owner: Visitor, database: Database) -> None:
    shown = (await owner.see("/account/security")).text
    token = shown.split('name="csrf" value="')[1].split('"')[0]
    answer = await owner.web.post(f"{owner.merchant_path}/mode/take", data={"csrf": token, "live": "1"})
    assert answer.status_code == 409
    assert (await find_merchant(database, int(owner.merchant_path.split("/")[2]))).test_mode


async def test_another_shop_is_opened_and_looked_at(owner: Visitor) -> None:
    place = leads_to(await owner.send("/account/shops/new", shop_name="Second Shop"))
    await owner.see(place)
    shown = text_of(await owner.see("/account/security"))
    assert "Merchant: Second Shop" in shown
    assert leads_to(await owner.see(owner.merchant_path)).startswith(owner.merchant_path)
    assert "Merchant: Corner Shop" in text_of(await owner.see("/account/security"))


async def test_a_theme_is_kept_without_a_script(owner: Visitor) -> None:
    assert 'data-bs-theme="auto"' in (await owner.see("/account/security")).text
    await owner.send("/account/security", "/account/theme", theme="dark")
    assert 'data-bs-theme="dark"' in (await owner.see("/account/security")).text
    await owner.send("/account/security", "/account/theme", theme='"><script>')
    assert 'data-bs-theme="auto"' in (await owner.see("/account/security")).text


@pytest.mark.parametrize("page", ["payments", "subscriptions", "pingbacks", "deliveries"])
async def test_an_empty_list_of_live_data_says_what_it_waits_for(owner: Visitor, page: str) -> None:
    why = "There are none until this merchant goes live"
    assert why not in text_of(await owner.see(f"{owner.merchant_path}/{page}"))
    await owner.send("/account/security", f"{owner.merchant_path}/mode", live="1")
    await owner.see("/account/security")
    assert why in text_of(await owner.see(f"{owner.merchant_path}/{page}"))
