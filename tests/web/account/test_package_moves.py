"""Moving what runs to another version of a package, in the account."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

from tests.web.account.conftest import Join, Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import Seller
from tests.web.account.test_subscriptions import MONTHLY, subscribe
from tests.web.account.test_subscriptions import seller as seller

from paydesk.core.clock import utc_now
from paydesk.domain.accounts.roles import Role
from paydesk.domain.subscriptions.moving import carry_on
from paydesk.domain.subscriptions.packages import agree_package


async def two_versions(owner: Visitor, seller: Seller, currency: str = "USD") -> tuple[str, int, int]:
    """The page to move from, the version that runs twice, and another one."""
    for number in range(2):
        await subscribe(seller, f"S-{number}")
    dearer = replace(MONTHLY, price=Decimal("12.00"), currency=currency)
    new = await agree_package(seller.database, seller.shop, dearer, now=utc_now())
    old = await agree_package(seller.database, seller.shop, MONTHLY, now=utc_now())
    listed = (await owner.see(f"{owner.merchant_path}/subscriptions/packages")).text
    page = re.findall(r'href="([^"]+/packages/\d+)"', listed)[0]
    assert f'href="{page}/move"' in (await owner.see(page)).text
    return f"{page}/move", old, new


async def carried_on(seller: Seller, page: str) -> None:
    moving = {"merchant_id": seller.shop.merchant_id, "move_id": int(page.rpartition("/")[2])}
    while await carry_on(seller.database, real_now=utc_now(), **moving):
        pass


async def read(visitor: Visitor, page: str) -> str:
    return text_of(await visitor.see(page)).replace("\u00a0", " ")


async def test_what_comes_of_it_is_shown_and_then_it_is_done_and_taken_back(owner: Visitor, seller: Seller) -> None:
    page, old, new = await two_versions(owner, seller)
    asked = f"{page}?from={old}&to={new}"
    shown = await read(owner, asked)
    for said in ("2 subscriptions go.", "One pays now 10.00 USD / month", "All pay now 20.00 USD / month",
                 "All pay then 24.00 USD / month"):  # fmt: skip
        assert said in shown, said
    hidden = fields_of((await owner.see(asked)).text, page)
    move = leads_to(await owner.web.post(page, data=hidden))
    assert leads_to(await owner.web.post(page, data=hidden)) == move
    assert "Under way Subscriptions to move 2 Planned 0" in await read(owner, move)
    assert "hx-get" in (await owner.see(move)).text
    await carried_on(seller, move)
    assert "All planned Subscriptions to move 2 Planned 2 Still to come 2 Moved 0" in await read(owner, move)
    assert "hx-get" not in (await owner.see(move)).text
    again = await read(owner, asked)
    assert "0 subscriptions go. These stay as they are: 2 waiting for another change" in again
    assert "Move them" not in again
    listed = await read(owner, page.removesuffix("/move"))
    assert re.search(rf"All planned {old} {new} 2 0", listed)
    back = f"{move}/back"
    hidden = fields_of((await owner.see(move)).text, back)
    for _ in range(2):
        assert leads_to(await owner.web.post(back, data=hidden)) == move
    await carried_on(seller, move)
    assert "Taken back Subscriptions to move 2 Planned 2 Still to come 0 Moved 0" in await read(owner, move)
    assert await seller.audited("subscription_changed") == [f"package move {move.rpartition('/')[2]}"] * 2


def preselected(page: str) -> list[str | None]:
    """What each of the two fields says before anybody chooses: the first if none is marked."""
    fields = [re.findall('<option value="([^"]*)"( selected)?', one) for one in page.split("<select")[1:]]
    return [next((value for value, marked in one if marked), one[0][0]) for one in fields]


async def test_it_begins_with_the_oldest_version_and_the_newest_and_never_with_one_twice(
    owner: Visitor, seller: Seller
) -> None:
    page, old, new = await two_versions(owner, seller)
    assert preselected((await owner.see(page)).text) == [str(old), str(new)]
    assert preselected((await owner.see(f"{page}?from={new}")).text) == [str(new), ""]
    await agree_package(seller.database, seller.shop, replace(MONTHLY, sku_id="tea", name="Tea"), now=utc_now())
    listed = (await owner.see(f"{owner.merchant_path}/subscriptions/packages")).text
    [alone] = set(re.findall(r'href="([^"]+/packages/\d+)"', listed)) - {page.removesuffix("/move")}
    only = (await owner.see(f"{alone}/move")).text
    assert preselected(only)[1] == ""
    assert re.search('id="f-to"[^>]* required', only)
    assert (await owner.see(f"{alone}/move?from={preselected(only)[0]}&to=")).status_code == 404


async def test_what_can_not_be_is_said_at_its_field(owner: Visitor, seller: Seller) -> None:
    page, old, euros = await two_versions(owner, seller, "EUR")
    for to, status, said in ((euros, 400, "keeps its currency"), (old, 400, "choose another one"), (99999999, 404, "")):
        answer = await owner.see(f"{page}?from={old}&to={to}")
        assert (answer.status_code, said in text_of(answer)) == (status, True)
        hidden = fields_of((await owner.see(page)).text, "/account/logout")
        sent = await owner.web.post(page, data={**hidden, "from": str(old), "to": str(to)})
        assert sent.status_code == status
    assert 'is-invalid" id="f-to"' in (await owner.see(f"{page}?from={old}&to={euros}")).text
    assert (await owner.see(f"{page}?from=x&to=%00")).status_code == 404
    assert (await owner.see(page)).status_code == 200


async def test_only_who_may_set_things_moves_them_and_other_shops_see_nothing(
    owner: Visitor, seller: Seller, join: Join
) -> None:
    page, old, new = await two_versions(owner, seller)
    hidden = fields_of((await owner.see(f"{page}?from={old}&to={new}")).text, page)
    move = leads_to(await owner.web.post(page, data=hidden))
    viewer = await join(owner, Role.viewer)
    assert (await viewer.see(page)).status_code == 403
    assert (await viewer.see(move)).status_code == 200
    csrf = fields_of((await viewer.see(move)).text, "/account/logout")
    assert (await viewer.web.post(f"{move}/back", data=csrf)).status_code == 403
    assert (await viewer.web.post(page, data={**csrf, "from": str(old), "to": str(new)})).status_code == 403
    assert (await owner.see(f"{owner.merchant_path}/subscriptions/moves/99999999")).status_code == 404
