"""Between rows and what they mean: reading `subscription_whole` and `package_terms`, writing versions as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paydesk.core.periods import Period
from paydesk.domain.merchants.customer_links import Link, LinkTo
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.lifecycle import Package, Subscription
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.domain.subscriptions.terms import Terms, Trial

_KEPT = (
    "merchant_id", "live", "id", "init_payment_id", "init_merchant_order_id", "time_zone", "anchor", "next_period",
    "date_next", "date_start", "created_at", "failures", "counter", "paid_number_counter", "date_active", "date_paid",
    "date_end", "date_expired", "date_cancelled", "date_stopped", "cancelled_by", "revision",
    "skipped",
)  # fmt: skip
"""Columns that a version carries under the same name."""


def package_of(row: Mapping[str, Any]) -> Package:
    """The package in a row of `package_terms`, or of a statement that joins it."""
    trial = None
    if row["trial_length"]:
        trial = Trial(row["trial_price"], Period(row["trial_length"], row["trial_unit"]))
    terms = Terms(
        name=row["package_name"],
        sku_id=row["sku_id"],
        currency=row["currency"],
        price=row["price"],
        period=Period(row["period_length"], row["period_unit"]),
        trial=trial,
        limit=row["payment_limit"],
    )
    return Package(row["package_id"], row["package_version_id"], terms, row["subscriptions_count"])


def subscription_of(row: Mapping[str, Any]) -> Subscription:
    """The subscription in a row of `subscription_whole`."""
    values = {name: row[name] for name in _KEPT}
    return Subscription(**values, state=SubscriptionState(row["state"]), package=package_of(row), email=row["email"])


def link_of(row: Mapping[str, Any]) -> Link:
    """The link to the portal of the subscription in a row of `subscription_whole`: who has it may cancel.

    One of an older version stays what it is told by as long as it stands in its row in clear.
    """
    shop = Shop(row["merchant_id"], row["live"])
    old = row["portal_token"] if row["portal_seed"] is None else None
    return Link(LinkTo.PORTAL, shop, row["id"], row["portal_seed"] or "", old)


def as_rows(versions: Sequence[Subscription], details: Sequence[Mapping[str, Any]] = ()) -> str:
    """Versions as a JSON array that `jsonb_populate_recordset(null::subscription, …)` reads.

    `details` adds columns that a version does not carry, one mapping for each version (new subscriptions need them).
    """
    if not details:
        # Straight from the dataclasses: what is no column of the table (the package, the e-mail) is not read.
        return msgspec.json.encode(versions).decode()
    rows = [
        {
            **{name: getattr(version, name) for name in _KEPT},
            "state": str(version.state),
            "package_version_id": version.package.version_id,
            **more,
        }
        for version, more in zip(versions, details, strict=True)
    ]
    return msgspec.json.encode(rows).decode()
