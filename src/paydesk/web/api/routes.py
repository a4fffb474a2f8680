"""All routes of the API; only the calls with a private key are in its OpenAPI document."""

from __future__ import annotations

from fastapi import APIRouter

from paydesk.web.api import (
    chargebacks,
    charges,
    checkouts,
    coupons,
    deliveries,
    docs_page,
    ledger,
    payments,
    pingbacks,
    refunds,
    subscription_changes,
    subscription_items,
    subscriptions,
    test_clock,
)

router = APIRouter()
for part in (
    checkouts,
    subscriptions,
    subscription_changes,
    subscription_items,
    coupons,
    payments,
    refunds,
    charges,
    deliveries,
    pingbacks,
    chargebacks,
    ledger,
    test_clock,
    docs_page,
):
    router.include_router(part.router)
