"""What a merchant's server does with subscriptions (interface.md §8.4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from paydesk_client.calls import ApiError, Calls
from paydesk_client.idempotency import checked


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The subscriptions of one merchant."""

    calls: Calls

    def cancel(self, subscription_id: int | str) -> dict[str, Any]:
        """Cancel a subscription at once; nothing is charged any more,
        and one `subscription_cancelled` pingback comes.

        A charge that was already on its way to the bank stands if the bank approves it. Cancelling
        again changes nothing and answers the same, so it is safe to try again after an error.

        Args: subscription_id is the `subscription.id` of a pingback.
        Returns: the subscription as it stands now, in the shape that pingbacks have.
        Raises: ApiError, with status 404 if the merchant has no such subscription, 401 if the key
            is wrong, 0 if no answer came.
        """
        cancelled: dict[str, Any] = self.calls.post(f"/api/subscription/{quote(str(subscription_id), safe='')}/cancel")
        return cancelled

    def cancel_later(
        self, subscription_id: int | str, *, preview: bool = False, idempotency_key: str | None = None
    ) -> dict[str, Any]:
        """Have a subscription end with the period that is paid; until then `undo` takes it back.

        Nothing is charged any more, and one `subscription_cancelled` pingback comes when it ends.

        Args: a `preview` answers what would come of it and changes nothing.
        Returns: the subscription, in the shape that pingbacks have, with `preview`, `replaced` (the
            `change_request` in whose place this came), `charged_now`, `next_charge_at` and
            `next_charge_amount`.
        Raises: ApiError, with status 409 while it is charged or paused, and if it runs out by
            itself; and as `cancel` does.
        """
        return self._change(subscription_id, "cancel", {"at": "period_end"}, preview, idempotency_key)

    def change(
        self,
        subscription_id: int | str,
        *,
        package_version_id: int | None = None,
        price: str | Decimal | None = None,
        period: str | None = None,
        quantity: int | None = None,
        sku_id: str | None = None,
        name: str | None = None,
        now: bool = False,
        proration_behavior: str | None = None,
        preview: bool = False,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Have a subscription go on as another package, or at another price or rhythm,
        from its next period on; until then `undo` takes it back. Nothing is charged before that.

        With `now` it is of the other plan at once, which `undo` does not take back: nothing is
        charged or given back for the period that is paid, and the next one has the new price. With
        `proration_behavior="next_charge"` its charge has the difference for the rest of the period
        besides. With `"charge_now"` that is charged now, and the plan changes once it is paid: if
        `charge["status"]` is `processing`, the bank has not answered, and the plan is the old one
        until it has. Call it again with the same `idempotency_key` after an error. In its trial,
        and for periods of another length, another period begins with that and is charged, less the
        unused share of what was paid before; with `"none"`, said so, it is charged whole.

        Args: package_version_id is that of a subscription that was sold before (left out: its own);
            what else is given takes the place of what that says. `period` is written as in the
            form, `sku_id` needs `name` and `price`. With a `quantity` the price is that of one.
        Returns: as `cancel_later`.
        Raises: ApiError, with status 409 while it is charged, failing or paused, and if it runs out
            by itself, with `now` also in its trial and for periods of another length, unless
            `proration_behavior` says how that is charged; 402 if the bank declined what was to be
            charged now, and nothing has changed; and as `cancel` does.
        """
        given: dict[str, str | int | None] = {
            "package_version_id": package_version_id,
            "price": None if price is None else str(price),
            "period": period,
            "quantity": quantity,
            "sku_id": sku_id,
            "name": name,
            "proration_behavior": proration_behavior,
        }
        fields = {name: value for name, value in given.items() if value is not None}
        return self._change(
            subscription_id, "change", {"when": "now" if now else "period_end", **fields}, preview, idempotency_key
        )

    def undo(
        self, subscription_id: int | str, *, preview: bool = False, idempotency_key: str | None = None
    ) -> dict[str, Any]:
        """Have a subscription go on that was to end with its period, or to change its plan;
        it is charged as before.

        Returns: as `cancel_later`.
        Raises: ApiError, with status 409 if it has ended or is paused; and as `cancel` does.
        """
        return self._change(subscription_id, "undo", {}, preview, idempotency_key)

    def pause(
        self,
        subscription_id: int | str,
        until: datetime | None = None,
        *,
        preview: bool = False,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Charge nothing until a moment, or (None) until it is resumed:
        the customer gets nothing meanwhile, and what was paid lasts longer by the pause.

        Args: until has a time zone.
        Returns: as `cancel_later`.
        Raises: ApiError, with status 409 while it is charged, and if it has ended; and as `cancel`
            does; ValueError for a moment without a time zone.
        """
        if until is not None and until.tzinfo is None:
            raise ValueError("until has no time zone; give datetime(…, tzinfo=UTC)")
        fields = {} if until is None else {"until": until.astimezone(UTC).isoformat()}
        return self._change(subscription_id, "pause", fields, preview, idempotency_key)

    def resume(
        self, subscription_id: int | str, *, preview: bool = False, idempotency_key: str | None = None
    ) -> dict[str, Any]:
        """End a subscription's pause: what was left of its period runs on.

        Returns: as `cancel_later`.
        Raises: ApiError, with status 409 if it has ended; and as `cancel` does.
        """
        return self._change(subscription_id, "resume", {}, preview, idempotency_key)

    def add_item(
        self,
        subscription_id: int | str,
        amount: str | Decimal,
        description: str,
        *,
        preview: bool = False,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Have the next charge of a subscription take an amount besides its price, once.

        It is for a set-up, an extra, or what was used. Nothing is charged before, and until then
        `take_back_item` undoes it.

        Args: amount is in main units of the subscription's currency, description what the customer
            reads; they must have agreed to such charges.
        Returns: the `item`, `preview`, `next_charge_at`, `next_charge_amount` and `balance`.
        Raises: ApiError, with status 409 while it is charged, and if no charge comes any more; and
            as `cancel` does.
        """
        fields = {"amount": str(amount), "description": description}
        return self._change(subscription_id, "items", fields, preview, idempotency_key)

    def take_back_item(
        self,
        subscription_id: int | str,
        item_id: int | str,
        *,
        preview: bool = False,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Have an item not be charged after all that no charge was tried with.

        Returns: as `add_item`.
        Raises: ApiError, with status 409 once a charge was tried with it; and as `cancel` does.
        """
        wish = f"items/{quote(str(item_id), safe='')}/take_back"
        return self._change(subscription_id, wish, {}, preview, idempotency_key)

    def _change(
        self, subscription_id: int | str, wish: str, fields: Mapping[str, str | int], preview: bool, key: str | None
    ) -> dict[str, Any]:
        """Call once for a key, which is drawn if none is given."""
        path = f"/api/v1/subscriptions/{quote(str(subscription_id), safe='')}/{wish}"
        key = str(uuid4()) if key is None else checked(key)
        try:
            changed: dict[str, Any] = self.calls.post(path, {**fields, "preview": preview}, {"Idempotency-Key": key})
        except ApiError as error:
            error.idempotency_key = key
            raise
        return changed
