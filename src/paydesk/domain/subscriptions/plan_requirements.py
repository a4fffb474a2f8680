"""What has to hold of a subscription before it goes on as another package."""

from __future__ import annotations

from datetime import datetime

from paydesk.core.errors import Conflict
from paydesk.core.wording import plural, worded
from paydesk.domain.subscriptions.ending import require_running
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Package


def require_unpaused(current: Subscription) -> None:
    """Raises: Conflict if it has ended, is paused, or has no card yet."""
    require_running(current)
    if not current.has_card:
        raise Conflict(
            worded(
                "subscription %(id)s has no card yet: change its plan once its customer has given one", id=current.id
            )
        )
    if current.paused:
        raise Conflict(worded("subscription %(id)s is paused: resume it first", id=current.id))


def require_plan_possible(current: Subscription, package: Package, version_id: int, now: datetime) -> None:
    """Whether it may go on as another package. Raises: Conflict, saying why not."""
    if current.package.version_id != version_id:
        raise Conflict(worded("the plan of subscription %(id)s has changed just now; try again", id=current.id))
    if current.date_end is not None:
        raise Conflict(
            worded(
                "subscription %(id)s is not charged again, so no period is left to be of another plan", id=current.id
            )
        )
    if current.paid_until <= now or current.failures:
        raise Conflict(
            worded(
                "the charge of subscription %(id)s for the period that has begun is not paid yet; change it then",
                id=current.id,
            )
        )
    limit = package.terms.limit
    if limit and current.next_period > limit:
        raise Conflict(
            plural(
                "subscription %(id)s has had %(count)s payment, and that plan has %(limit)s in all",
                "subscription %(id)s has had %(count)s payments, and that plan has %(limit)s in all",
                id=current.id,
                count=current.counter,
                limit=limit,
            )
        )
