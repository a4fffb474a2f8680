"""Settings of the shop: name, address, time zone, shipped goods, mails."""

from __future__ import annotations

from dataclasses import fields, replace

from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.domain.accounts.people import time_zones
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business.shop_settings import ShopSettings, find_shop_settings, save_shop_settings
from paydesk.domain.merchants.customer_ways import PortalCancels, PortalPlans
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.merchants.notice_days import MOST_NOTICE_DAYS, parse_notice_days
from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP
from paydesk.domain.subscriptions.dunning import LONGEST_PLAN, MOST_TRIES, parse_delays, usual_delays
from paydesk.domain.subscriptions.subscription_terms import SHORTEST_FOR_SLOW
from paydesk.web.account.face import FACE
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_SHOP = "/account/{merchant_id}/settings/shop"


@section.page(_SHOP, needs=Permission.manage_settings)
async def show_shop(visit: Visit) -> Response:
    """The form, with what is chosen now."""
    return await _page(visit)


async def _page(
    visit: Visit,
    typed: ShopSettings | None = None,
    errors: dict[str, str] | None = None,
    status: int = 200,
    delays: str | None = None,
    notice: str | None = None,
) -> Response:
    chosen, held = await find_shop_settings(visit.database, visit.merchant_id)
    return visit.page(
        "shop_settings.html",
        status=status,
        shop=typed or chosen,
        held=held,
        days=TIME_TO_SHIP.days,
        allowed=visit.services.desk.slow_methods,
        shortest=SHORTEST_FOR_SLOW,
        zones=sorted(time_zones()),
        cancels=[(str(way), visit.texts.get(text)) for way, text in _CANCELS.items()],
        plans=[(str(way), visit.texts.get(text)) for way, text in _PLANS.items()],
        ends=[(str(end), visit.texts.get(text)) for end, text in _ENDS.items()],
        delays=_shown(typed or chosen) if delays is None else delays,
        usual=", ".join(map(str, usual_delays())),
        notice=str((typed or chosen).charge_notice_days or "") if notice is None else notice,
        most_notice=MOST_NOTICE_DAYS,
        most_tries=MOST_TRIES,
        longest_plan=LONGEST_PLAN,
        errors=errors or {},
    )


@section.action(_SHOP, needs=Permission.manage_settings)
async def save(visit: Visit) -> Response:
    """Take the settings; what is wrong stands in the form with the reason."""
    typed = ShopSettings(
        name=visit.form.text("name", 300),
        email=visit.form.text("email", 300),
        time_zone=visit.form.text("time_zone", 60),
        shipped_goods=visit.form.has("shipped_goods"),
        customer_mails=visit.form.has("customer_mails"),
        test_mails=visit.form.has("test_mails"),
        saves_cards=visit.form.has("saves_cards"),
        signs_quantities=visit.form.has("signs_quantities"),
        signs_line_items=visit.form.has("signs_line_items"),
        portal_cancels=PortalCancels(_way(visit, "portal_cancels")),
        portal_pauses=visit.form.has("portal_pauses"),
        portal_plans=PortalPlans(_way(visit, "portal_plans")),
        portal_quantities=visit.form.has("portal_quantities"),
        slow_methods=visit.form.has("slow_methods"),
        trials_without_card=visit.form.has("trials_without_card"),
        app_schemes=tuple(visit.form.text("app_schemes", 1000).replace(",", " ").split()),
        dunning_by_reason=visit.form.has("dunning_by_reason"),
        dunning_end=DunningEnd(_way(visit, "dunning_end")),
    )
    delays, notice = visit.form.text("dunning_hours", 200), visit.form.text("charge_notice_days", 20)
    desk = visit.services.desk
    sides = [await desk.serving(replace(visit.shop, live=live), None) for live in (False, True)]
    try:
        visit.form.require_only(*ShopSettings.__slots__, boxes=_BOXES)
        for name, (words, usual) in _WAYS.items():
            visit.form.one_of(name, *words, usual=usual)
        typed = replace(typed, dunning_hours=parse_delays(delays, "dunning_hours"))
        typed = replace(typed, charge_notice_days=parse_notice_days(notice, "charge_notice_days"))
        await save_shop_settings(visit.gate, visit.session, typed, sides, now=visit.now)
    except Malformed as error:
        return await _page(
            visit, typed, field_errors(visit, error, *ShopSettings.__slots__), error.status, delays, notice
        )
    return visit.go(visit.url("settings/shop"), visit.texts.get("Saved."))


def _shown(shop: ShopSettings) -> str:
    """The delays as they are typed."""
    return ", ".join(map(str, shop.dunning_hours or ()))


def _way(visit: Visit, name: str) -> str:
    """What was chosen of some ways, for the form; the usual one if it says none of them."""
    words, usual = _WAYS[name]
    said = visit.form.text(name, 40)
    return said if said in words else usual


_BOXES = tuple(one.name for one in fields(ShopSettings) if one.type == "bool")
_ENDS = {
    DunningEnd.CANCEL: mark("The subscription is stopped"),
    DunningEnd.KEEP_OPEN: mark("It stays open until the customer pays"),
    DunningEnd.PAUSE: mark("It is paused until the customer pays"),
}
_CANCELS = {
    PortalCancels.NOW: mark("At once"),
    PortalCancels.PERIOD_END: mark("With the period that is paid; until then they can undo it"),
    PortalCancels.BOTH: mark("As they choose"),
}
_PLANS = {
    PortalPlans.PERIOD_END: mark("With the next period; until then they can undo it"),
    PortalPlans.NOW: mark("At once: what it costs more is charged now"),
    PortalPlans.BOTH: mark("As they choose"),
}
_WAYS: dict[str, tuple[tuple[str, ...], str]] = {
    "portal_cancels": (tuple(PortalCancels), PortalCancels.NOW),
    "portal_plans": (tuple(PortalPlans), PortalPlans.PERIOD_END),
    "dunning_end": (tuple(DunningEnd), DunningEnd.CANCEL),
}
"""The words of each choice, and what holds if a form does not have it."""
