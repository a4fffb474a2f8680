"""What charges and checks of a subscription carry at the acquirer,
from the rows of their intents.
"""

from __future__ import annotations

from dataclasses import dataclass

from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.marking import digest_of
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.rows import RenewalRow, package_of


@dataclass(frozen=True, slots=True)
class BegunCheck:
    """The check of a new card whose intent has just been committed:
    a row of `begin_card_change`.
    """

    id: int
    init_merchant_order_id: str
    key_tag: str
    deployment: str
    epoch: int


class RenewalMarks:
    """The marks of a batch of renewals' attempts: the terms of a version are digested once."""

    def __init__(self) -> None:
        self._digests: dict[tuple[int, bool, int | None], str] = {}

    def of(self, row: RenewalRow) -> Mark:
        """The mark of a renewal's attempt; its order is the subscription's first."""
        return Mark(
            deployment=row.deployment,
            epoch=row.epoch,
            merchant=row.key_tag,
            live=row.live,
            kind=PurchaseKind.RENEWAL,
            order=row.init_merchant_order_id,
            payment_id=row.payment_id,
            attempt=row.number,
            subscription_id=row.id,
            period=row.period_number or 0,
            terms=self._digest(row),
        )

    def _digest(self, row: RenewalRow) -> str:
        version = (row.merchant_id, row.live, row.package_version_id)
        digest = self._digests.get(version)
        if digest is None:
            digest = self._digests[version] = digest_of(package_of(row).terms)
        return digest


def card_mark(row: BegunCheck, shop: Shop, subscription: Subscription) -> Mark:
    """The mark of a new card's check."""
    return Mark(
        deployment=row.deployment,
        epoch=row.epoch,
        merchant=row.key_tag,
        live=shop.live,
        kind=PurchaseKind.CARD,
        order=row.init_merchant_order_id,
        subscription_id=subscription.id,
        terms=digest_of(subscription.package.terms),
    )
