"""What a merchant's server says of the goods of an order (interface.md §8.6)."""

from dataclasses import dataclass
from typing import Any, Literal

from paydesk_client.calls import Calls
from paydesk_client.parameters import Value


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The deliveries of one merchant."""

    calls: Calls

    def confirm(
        self,
        payment_order_id: int | str | None,
        status: Literal["order_placed", "order_shipped", "delivered"],
        *,
        type: Literal["physical", "digital"] = "physical",  # noqa: A002 (the field's name)
        merchant_reference_id: str | None = None,
        carrier_type: str | None = None,
        carrier_tracking_id: str | None = None,
        carrier_tracking_url: str | None = None,
        **fields: Value,
    ) -> dict[str, Any]:
        """Say what became of an order's goods; `order_shipped` takes the money that was held
        for it.

        For digital goods `delivered` takes it. The same confirmation again changes nothing and
        answers the same, so it is safe to try again after an error.

        Args: payment_order_id is the `payment_order.id` of the pingback, or None if
            merchant_reference_id names the order. `order_shipped` needs the carrier's name and the
            tracking id, and unless the carrier is a well-known one the address where the parcel can
            be followed. `fields` are the others that the API knows, such as `details` or
            `shipping_address`.
        Returns: `status` is `captured`, `processing` (recorded; whether the money is taken is not
            known yet) or `recorded` (no money moved), and `id` names this line of the
            order's timeline.
        Raises: ApiError, with status 400 if something is missing, 404 if the merchant has no such
            order, 409 if it was voided or the bank would not capture, 401 if the key is wrong, 0 if
            no answer came.
        """
        said: dict[str, Value] = {
            "payment_order_id": payment_order_id,
            "merchant_reference_id": merchant_reference_id,
            "status": status,
            "type": type,
            "carrier_type": carrier_type,
            "carrier_tracking_id": carrier_tracking_id,
            "carrier_tracking_url": carrier_tracking_url,
            **fields,
        }
        given = {name: value for name, value in said.items() if value is not None}
        confirmed: dict[str, Any] = self.calls.post("/api/v1/deliveries", given)
        return confirmed
