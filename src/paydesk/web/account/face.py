"""What surrounds the account's pages: their templates, the sidebar and the tabs of the settings."""

from __future__ import annotations

from pathlib import Path

from paydesk.domain.accounts.roles import Permission
from paydesk.web.console.shell import Entry, Face, catalogues_of, pages_of
from paydesk.web.texts import mark

_HERE = Path(__file__).parent
_SHOP = "/account/{merchant_id}"

FACE = Face(
    pages_of(_HERE / "templates"),
    catalogues_of(_HERE),
    sidebar=(
        Entry(f"{_SHOP}/overview", mark("Overview"), "layout-dashboard", Permission.view),
        Entry(f"{_SHOP}/payments", mark("Payments"), "credit-card", Permission.view),
        Entry(f"{_SHOP}/subscriptions", mark("Subscriptions"), "repeat", Permission.view),
        Entry(f"{_SHOP}/links", mark("Payment links"), "external-link", Permission.view),
        Entry(f"{_SHOP}/coupons", mark("Coupons"), "cash", Permission.view),
        Entry(f"{_SHOP}/deliveries", mark("Deliveries"), "truck-delivery", Permission.view),
        Entry(f"{_SHOP}/disputes", mark("Disputes"), "scale", Permission.view),
        Entry(f"{_SHOP}/pingbacks", mark("Pingbacks"), "webhook", Permission.view_pingbacks),
        Entry(f"{_SHOP}/balance", mark("Balance"), "wallet", Permission.payouts_view),
        Entry(f"{_SHOP}/developers", mark("Developers"), "code", Permission.manage_integration),
    ),
    settings=(
        Entry(f"{_SHOP}/settings/shop", mark("Shop"), "adjustments", Permission.manage_settings),
        Entry(f"{_SHOP}/settings/profile", mark("Business profile"), "building-store", Permission.manage_settings),
        Entry(f"{_SHOP}/settings/branding", mark("Branding"), "palette", Permission.manage_settings),
        Entry(f"{_SHOP}/settings/cards", mark("Card testing"), "shield-check", Permission.manage_settings),
        Entry(f"{_SHOP}/settings/team", mark("Team"), "users", Permission.manage_team),
        Entry(f"{_SHOP}/settings/audit", mark("Audit log"), "history", Permission.view_audit),
    ),
    about_merchants=True,
)
