"""What each member of a merchant's team may do: one table, which every page and action asks."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Role(StrEnum):
    """A member's part in a merchant's team."""

    owner = "owner"
    developer = "developer"
    support = "support"
    viewer = "viewer"


class Permission(StrEnum):
    """One thing that a member may be allowed to do."""

    view = "view"
    """See payments, subscriptions, deliveries and figures."""
    export = "export"
    """Take lists out as CSV, with customers' names and addresses."""
    refund = "refund"
    cancel_subscription = "cancel_subscription"
    confirm_delivery = "confirm_delivery"
    answer_disputes = "answer_disputes"
    """Write evidence about a chargeback, and hand it to the bank."""
    view_pingbacks = "view_pingbacks"
    """See the exact bodies and headers that were sent, and refused checkout forms."""
    resend_pingback = "resend_pingback"
    """Send pingbacks again, and test events."""
    manage_integration = "manage_integration"
    """Change pingback URLs, signature version, body format and extra events."""
    manage_keys = "manage_keys"
    move_test_clock = "move_test_clock"
    toggle_test_mode = "toggle_test_mode"
    """Decide whether forms at the live base count as test;
    everybody may choose what they look at."""
    manage_settings = "manage_settings"
    """Change business profile, shipped goods and branding."""
    go_live = "go_live"
    payouts_view = "payouts_view"
    """See balance, reserve, payouts and statements."""
    manage_team = "manage_team"
    view_audit = "view_audit"


ALLOWED: Mapping[Role, frozenset[Permission]] = MappingProxyType(
    {
        Role.owner: frozenset(Permission),
        Role.developer: frozenset(
            {
                Permission.view,
                Permission.export,
                Permission.view_pingbacks,
                Permission.resend_pingback,
                Permission.manage_integration,
                Permission.manage_keys,
                Permission.move_test_clock,
                Permission.toggle_test_mode,
            }
        ),
        Role.support: frozenset(
            {
                Permission.view,
                Permission.export,
                Permission.refund,
                Permission.cancel_subscription,
                Permission.confirm_delivery,
                Permission.answer_disputes,
                Permission.view_pingbacks,
                Permission.resend_pingback,
            }
        ),
        Role.viewer: frozenset({Permission.view, Permission.payouts_view}),
    }
)
"""The one table of what roles may do."""


def allows(role: Role | None, permission: Permission) -> bool:
    """Whether a role may do something; who has no role may do nothing."""
    return role is not None and permission in ALLOWED[role]
