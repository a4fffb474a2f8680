"""The settings of a shop, as its team changes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from tests import set_back
from tests.web.account.conftest import Join, Visitor, leads_to, text_of
from tests.web.account.selling import seller_of

from paydesk.adapters.acquirers.simulator import SimulatedAcquirer
from paydesk.database.pool import Database
from paydesk.domain.accounts import people
from paydesk.domain.accounts.roles import Role
from paydesk.domain.payments.desk import Desk


def page_of(visitor: Visitor) -> str:
    return f"{visitor.merchant_path}/settings/shop"


def fields(visitor: Visitor, **changed: str) -> dict[str, Any]:
    return {
        "name": "Corner Shop",
        "email": visitor.email,
        "time_zone": "UTC",
        "customer_mails": "1",
        **changed,
    }


async def row_of(database: Database, visitor: Visitor) -> Any:
    return await database.fetchrow("select * from merchant where id = $1", int(visitor.merchant_path.split("/")[2]))


async def test_a_shop_gets_another_name_and_calendar(owner: Visitor, database: Database, desk: Desk) -> None:
    wanted = fields(owner, name="  Tea \t House ", time_zone="Europe/Berlin", test_mails="1")
    assert leads_to(await owner.send(page_of(owner), page_of(owner), **wanted)) == page_of(owner)
    row = await row_of(database, owner)
    assert (row["name"], row["time_zone"], row["customer_mails"], row["test_mails"]) == (
        "Tea House", "Europe/Berlin", True, True,
    )  # fmt: skip
    assert "Saved." in text_of(await owner.see(page_of(owner)))
    assert "Tea House" in text_of(await owner.see(page_of(owner)))
    log = text_of(await owner.see(f"{owner.merchant_path}/settings/audit"))
    assert "Corner Shop → Tea House" in log
    assert await seller_of(desk, owner).audited("settings_changed") == ["shop"]


async def test_saving_what_is_there_changes_and_logs_nothing(owner: Visitor, desk: Desk) -> None:
    assert leads_to(await owner.send(page_of(owner), page_of(owner), **fields(owner))) == page_of(owner)
    assert await seller_of(desk, owner).audited("settings_changed") == []


async def test_goods_that_are_shipped_hold_new_payments(owner: Visitor, desk: Desk) -> None:
    seller = seller_of(desk, owner)
    before = await seller.sell()
    await owner.send(page_of(owner), page_of(owner), **fields(owner, shipped_goods="1"))
    assert await seller.state(await seller.sell()) == "authorized"
    assert await seller.state(before) == "captured"
    await owner.send(page_of(owner), page_of(owner), **fields(owner))
    assert await seller.state(await seller.sell()) == "captured"


async def test_a_team_switches_on_payments_that_take_days(owner: Visitor, database: Database) -> None:
    shown = text_of(await owner.see(page_of(owner)))
    assert "Customers may pay by bank transfer or direct debit" in shown
    assert "The operator does not offer such methods just now" in shown
    await owner.send(page_of(owner), page_of(owner), **fields(owner, slow_methods="1"))
    assert (await row_of(database, owner))["slow_methods"]
    await owner.send(page_of(owner), page_of(owner), **fields(owner))
    assert not (await row_of(database, owner))["slow_methods"]


async def test_a_team_lets_free_trials_begin_without_a_card(owner: Visitor, database: Database, desk: Desk) -> None:
    box = re.compile(r'<input[^>]*name="trials_without_card"[^>]*>')
    shown = box.search((await owner.see(page_of(owner))).text)
    assert shown is not None
    assert "checked" not in shown[0]
    await owner.send(page_of(owner), page_of(owner), **fields(owner, trials_without_card="1"))
    assert (await row_of(database, owner))["trials_without_card"]
    chosen = box.search((await owner.see(page_of(owner))).text)
    assert chosen is not None
    assert "checked" in chosen[0]
    await owner.send(page_of(owner), page_of(owner), **fields(owner))
    assert not (await row_of(database, owner))["trials_without_card"]
    assert await seller_of(desk, owner).audited("settings_changed") == ["shop", "shop"]


@pytest.fixture
def short_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedAcquirer, "hold_period", timedelta(days=5))


@pytest.mark.usefixtures("short_holds")
async def test_an_acquirer_that_cannot_hold_money_long_enough_is_named(owner: Visitor, database: Database) -> None:
    answer = await owner.send(page_of(owner), page_of(owner), **fields(owner, shipped_goods="1"))
    assert answer.status_code == 400
    assert text_of(answer).count("holds money for 5 days") == 1
    assert not (await row_of(database, owner))["shipped_goods"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", " "), ("name", "x" * 101), ("email", "nobody"), ("email", "a@b.example\nBcc: c@d.example"),
     ("time_zone", "Mars/Olympus"), ("time_zone", "../../etc/passwd"), ("time_zone", ""),
     ("portal_cancels", "never"), ("portal_plans", "NOW"), ("portal_plans", ""), ("dunning_end", "give_up")],
)  # fmt: skip
async def test_a_setting_that_makes_no_sense_is_named_at_its_field(
    owner: Visitor, database: Database, field: str, value: str
) -> None:
    before = await row_of(database, owner)
    answer = await owner.send(page_of(owner), page_of(owner), **fields(owner, **{field: value}))
    assert answer.status_code == 400
    assert f'id="e-{field}"' in answer.text
    assert await row_of(database, owner) == before


async def test_a_time_zone_that_the_database_does_not_know_is_refused(
    owner: Visitor, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As one that is new in the IANA database, or a name that this machine alone has for its own.
    monkeypatch.setattr(people, "available_timezones", lambda: {"Mars/Olympus", "localtime", "UTC"})
    people.time_zones.cache_clear()
    try:
        assert 'value="localtime"' not in (await owner.see(page_of(owner))).text
        for zone in ("Mars/Olympus", "localtime"):
            answer = await owner.send(page_of(owner), page_of(owner), **fields(owner, time_zone=zone))
            assert answer.status_code == 400
            assert 'id="e-time_zone"' in answer.text
    finally:
        people.time_zones.cache_clear()
    assert (await row_of(database, owner))["time_zone"] == "UTC"


async def test_every_time_zone_that_is_offered_is_the_same_to_the_database(owner: Visitor, database: Database) -> None:
    """Its subscriptions can be written down, by the same hour of a summer's day; rules that changed
    lately are of some release.
    """
    offered = re.findall(r'<option value="([A-Z][^"]+)">', (await owner.see(page_of(owner))).text)
    zones = [zone for zone in offered if zone in available_timezones()]
    assert len(zones) > 400
    noon = datetime(2024, 7, 10, 12, tzinfo=UTC)
    rows = await database.fetch("select z, $1::timestamptz at time zone z as at from unnest($2::text[]) z", noon, zones)
    assert {row["z"]: row["at"] for row in rows} == {
        zone: noon.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for zone in zones
    }


async def test_a_shop_by_an_older_name_of_a_zone_gets_its_own(owner: Visitor, database: Database) -> None:
    assert leads_to(await owner.send(page_of(owner), page_of(owner), **fields(owner, time_zone="CET"))) == page_of(
        owner
    )
    assert (await row_of(database, owner))["time_zone"] == "Europe/Brussels"


async def test_another_address_wants_the_password(owner: Visitor, database: Database) -> None:
    await set_back.password_long_ago(database, owner.email)
    asked = await owner.send(page_of(owner), page_of(owner), **fields(owner, email="new@shop.example"))
    assert asked.status_code == 403
    assert "Confirm it's you" in text_of(asked)
    answer = await owner.send(page_of(owner), page_of(owner), **fields(owner, name="Tea House"))
    assert leads_to(answer) == page_of(owner)


@pytest.mark.parametrize("role", [Role.developer, Role.support, Role.viewer])
async def test_only_an_owner_changes_the_shop(owner: Visitor, join: Join, role: Role) -> None:
    member = await join(owner, role)
    assert (await member.see(page_of(owner))).status_code == 403


async def test_a_shop_names_its_apps(owner: Visitor, database: Database) -> None:
    wanted = fields(owner, app_schemes="ShopApp:// com.shop.app, shopapp")
    assert leads_to(await owner.send(page_of(owner), page_of(owner), **wanted)) == page_of(owner)
    assert (await row_of(database, owner))["app_schemes"] == ["com.shop.app", "shopapp"]
    assert 'value="com.shop.app shopapp"' in (await owner.see(page_of(owner))).text
    await owner.send(page_of(owner), page_of(owner), **fields(owner))
    assert (await row_of(database, owner))["app_schemes"] == []


@pytest.mark.parametrize("scheme", ["javascript", "https", "ms-word", "not a scheme!"])
async def test_what_is_no_app_of_the_shops_own_is_refused(owner: Visitor, database: Database, scheme: str) -> None:
    answer = await owner.send(page_of(owner), page_of(owner), **fields(owner, app_schemes=scheme))
    assert answer.status_code == 400
    assert "is not the scheme of an app of your own" in text_of(answer)
    assert (await row_of(database, owner))["app_schemes"] == []


async def test_a_team_makes_a_dunning_plan_and_takes_it_back(owner: Visitor, database: Database, desk: Desk) -> None:
    assert "Left empty: 6, 6, 6." in text_of(await owner.see(page_of(owner)))
    wanted = fields(owner, dunning_hours="1d, 3d 100", dunning_by_reason="1", dunning_end="keep_open")
    assert leads_to(await owner.send(page_of(owner), page_of(owner), **wanted)) == page_of(owner)
    row = await row_of(database, owner)
    assert (row["dunning_hours"], row["dunning_by_reason"], row["dunning_end"]) == ([24, 72, 100], True, "keep_open")
    assert 'value="24, 72, 100"' in (await owner.see(page_of(owner))).text
    assert await seller_of(desk, owner).audited("settings_changed") == ["shop"]
    await owner.send(page_of(owner), page_of(owner), **fields(owner))
    row = await row_of(database, owner)
    assert (row["dunning_hours"], row["dunning_by_reason"], row["dunning_end"]) == (None, False, "cancel")


async def test_a_team_says_how_long_before_charges_are_announced(owner: Visitor, database: Database) -> None:
    for typed, kept in ((" 7 ", 7), ("90", 90), ("0", None), ("14", 14), ("", None)):
        wanted = fields(owner, charge_notice_days=typed)
        assert leads_to(await owner.send(page_of(owner), page_of(owner), **wanted)) == page_of(owner)
        assert (await row_of(database, owner))["charge_notice_days"] == kept
        assert re.search(
            rf'name="charge_notice_days"[^>]* value="{kept or ""}"', (await owner.see(page_of(owner))).text
        )


@pytest.mark.parametrize("typed", ["91", "-1", "1.5", "a week", "٣", "9999"])
async def test_days_of_notice_that_cannot_be_are_shown_with_the_reason(
    owner: Visitor, database: Database, typed: str
) -> None:
    answer = await owner.send(page_of(owner), page_of(owner), **fields(owner, charge_notice_days=typed))
    assert answer.status_code == 400
    assert "give a number of days, from 0 to 90" in text_of(answer).lower()
    assert f'value="{typed}"' in answer.text
    assert (await row_of(database, owner))["charge_notice_days"] is None


async def test_delays_that_cannot_be_are_shown_with_the_reason(owner: Visitor, database: Database) -> None:
    answer = await owner.send(page_of(owner), page_of(owner), **fields(owner, dunning_hours="24, soon"))
    assert answer.status_code == 400
    assert '"soon" is no delay' in text_of(answer)
    assert 'value="24, soon"' in answer.text
    assert (await row_of(database, owner))["dunning_hours"] is None


@pytest.mark.parametrize("box", ["shipped_goods", "saves_cards", "portal_pauses", "trials_without_card"])
async def test_a_box_that_says_no_changes_nothing(owner: Visitor, database: Database, box: str) -> None:
    before = await row_of(database, owner)
    for said in ("0", "", "on"):
        answer = await owner.send(page_of(owner), page_of(owner), **fields(owner, name="Tea House", **{box: said}))
        assert (answer.status_code, f'id="e-{box}"' in answer.text) == (400, True)
        assert f'"{said}" is none of the choices' in text_of(answer)
    assert await row_of(database, owner) == before


async def test_a_field_that_the_settings_do_not_have_changes_nothing(owner: Visitor, database: Database) -> None:
    before = await row_of(database, owner)
    answer = await owner.send(page_of(owner), page_of(owner), **fields(owner, name="Tea House", dunning_ends="pause"))
    assert answer.status_code == 400
    assert 'There is no field "dunning_ends" in this form' in text_of(answer)
    assert await row_of(database, owner) == before
