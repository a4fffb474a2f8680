"""What the changes of subscriptions are answered."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from paydesk.core.money import plain_number
from paydesk.domain.billing.differences import ChangedAtOnce
from paydesk.domain.billing.foreseeing import foreseen
from paydesk.domain.subscriptions.for_api import SeenSubscription
from paydesk.domain.subscriptions.subscription_object import change_object, price_text
from paydesk.web.api.shapes import Price, Seconds, Subscription
from paydesk.web.api.shaping import subscription_shape


class ChargeOfChange(msgspec.Struct, frozen=True):
    """What was charged for a change of plan, at once."""

    id: Annotated[int, Meta(description="The `payment_order.id` of its pingback.")]
    status: Annotated[
        str,
        Meta(
            description="`successful`, or `processing` while the bank has not answered: until it has the plan is the "
            "old one, and a pingback follows if it is paid."
        ),
    ]


class ChangedSubscription(Subscription, frozen=True):
    """The subscription as it stands now, or would stand after what is previewed."""

    preview: Annotated[bool, Meta(description="Whether nothing was changed: this is what would come of it.")]
    replaced: Annotated[
        dict[str, Any] | None,
        Meta(description="The `change_request` in whose place another one came; null without."),
    ]
    charged_now: Annotated[Price, Meta(description="What the change itself charges.")]
    next_charge_at: Annotated[Seconds, Meta(description="When the card is charged next, if all goes as it is now.")]
    next_charge_amount: Annotated[Price, Meta(description="How much that is.")]
    balance: Annotated[
        Decimal,
        Meta(description="What the next charges have besides the price, to four decimals; less than 0 is a credit."),
    ]
    prorated: Annotated[Decimal, Meta(description="What of the balance this change has put there.")]
    charge: Annotated[
        ChargeOfChange | None, Meta(description="The charge of what was to be charged now; null if there is none.")
    ]


class OneChangedSubscription(msgspec.Struct, frozen=True):
    """What came of the wish, or would come of it."""

    success: bool
    data: ChangedSubscription


CHANGE_ANSWERS = (OneChangedSubscription,)


def changed_shape(
    seen: SeenSubscription, done: ChangedAtOnce, balance: Decimal, portal_url: str, *, preview: bool
) -> ChangedSubscription:
    """What came of a wish, or would: `balance` is the subscription's as it stands."""
    changed, difference = done.changed, done.difference
    comes = foreseen(done, balance, preview=preview)
    shape = subscription_shape(replace(seen, subscription=changed.subscription), portal_url)
    status = "processing" if difference.is_open else "successful"
    return ChangedSubscription(
        **msgspec.structs.asdict(shape),
        preview=preview,
        replaced=change_object(seen.subscription, changed.replaced),
        charged_now=price_text(comes.charged_now, comes.currency),
        next_charge_at=int(comes.next_at.timestamp()) if comes.next_at else 0,
        next_charge_amount=price_text(comes.next_amount, comes.currency),
        balance=plain_number(comes.balance),
        prorated=plain_number(comes.prorated),
        charge=ChargeOfChange(difference.payment_id, status) if difference.payment_id else None,
    )
