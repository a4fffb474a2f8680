from tests.web.account.conftest import Join, SignUp, Visitor, text_of
from tests.web.account.selling import seller_of

from paydesk.domain.accounts.roles import Role
from paydesk.domain.payments.paying import Desk


async def test_the_log_shows_pingbacks_to_who_may_see_them(
    desk: Desk, owner: Visitor, sign_up: SignUp, join: Join
) -> None:
    seller = seller_of(desk, owner)
    await seller.sell("A-1")
    pingback_id = await seller.database.fetchval(
        "select id from pingback where merchant_id = $1", seller.shop.merchant_id
    )
    page = f"{owner.merchant_path}/pingbacks"
    one = f"{page}/{pingback_id}"
    assert one in (await owner.see(page)).text
    assert one in (await owner.see(f"{page}?reference=A-1")).text
    assert "Nothing fits these filters." in text_of(await owner.see(f"{page}?reference=B"))
    assert (await owner.see(f"{page}?state=%00x&before=9-9-9&since=x")).status_code == 200
    assert "A-1" in text_of(await owner.see(one))
    assert (await owner.see(f"{page}/{pingback_id + 1000}")).status_code == 404
    viewer = await join(owner, Role.viewer)
    assert (await viewer.see(page)).status_code == 403
    assert (await (await sign_up("Other")).see(one)).status_code == 404
