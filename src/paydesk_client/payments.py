"""What a merchant's server does with payments."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from paydesk_client.calls import ApiError, Calls
from paydesk_client.idempotency import checked


@dataclass(frozen=True, slots=True)
class Payments:
    """The payments of one merchant."""

    calls: Calls

    def refund(
        self,
        payment_id: int | str,
        amount: str | int | Decimal | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Give back an amount, or (None) all that is left;
        as often as you like, never more than was paid.

        A pingback tells of it too: `refund`, or `partial_refund` while something is left. Give an
        `idempotency_key` of your own for each refund that you mean to make (the id of your refund's
        row, a UUID): called again with the same one, after an error or no answer, it moves money
        once. Without one a key is drawn for each call, and an ApiError has it as `idempotency_key`.

        Args: payment_id is the `payment_order.id` of a pingback; amount is in the order's currency,
            never a float.
        Returns: `id`, `reference_id` (the refund's own), `status` (`reversal_refunded`,
            `reversal_refunded_partially`, or `processing` while the bank has not answered: the
            pingback follows), `refund_amount` and `total_refunded_amount`.
        Raises: ApiError, with status 400 for an amount that can't be given back or if nothing is
            left, 404 if the merchant has no such payment, 409 if it is not paid or the bank
            refuses, 0 if no answer came; TypeError for an amount of another type; ValueError for a
            key that no header can carry.
        """
        if isinstance(amount, bool) or not isinstance(amount, str | int | Decimal | None):
            raise TypeError(f'amount is a {type(amount).__name__}; give it as text or Decimal, such as "4.00"')
        fields = (
            None if amount is None else {"amount": format(amount, "f") if isinstance(amount, Decimal) else str(amount)}
        )
        path = f"/payment/{quote(str(payment_id), safe='')}/refund"
        key = str(uuid4()) if idempotency_key is None else checked(idempotency_key)
        try:
            refunded: dict[str, Any] = self.calls.post(path, fields, {"Idempotency-Key": key})
        except ApiError as error:
            error.idempotency_key = key
            raise
        return refunded

    def charge(
        self,
        instrument_id: int | str,
        merchant_order_id: str,
        amount: str | int | Decimal,
        currency: str,
        description: str,
        *,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Charge a card that a customer has saved at your shop, without them,
        as they agreed at the checkout.

        A `payment` pingback tells of it too. Give an `idempotency_key` of your own for each charge
        that you mean to make: called again with the same one, after an error or no answer, it moves
        money once. Without one a key is drawn for each call, and an ApiError has it as
        `idempotency_key`.

        Returns: `id` (the `payment_order.id` of the pingback), `status` (`successful`, or
            `processing` while the bank has not answered), `amount` and `currency`.
        Raises: ApiError, with status 402 if the bank declined, 403 if the customer has not agreed,
            404 if there is no such card, 409 beyond the limit that they agreed to or for an order
            that is paid, 0 if no answer came; TypeError for an amount of another type; ValueError
            for a key that no header can carry.
        """
        if isinstance(amount, bool) or not isinstance(amount, str | int | Decimal):
            raise TypeError(f'amount is a {type(amount).__name__}; give it as text or Decimal, such as "4.00"')
        fields = {
            "instrument_id": str(instrument_id),
            "merchant_order_id": merchant_order_id,
            "amount": format(amount, "f") if isinstance(amount, Decimal) else str(amount),
            "currency": currency,
            "description": description,
        }
        key = str(uuid4()) if idempotency_key is None else checked(idempotency_key)
        try:
            charged: dict[str, Any] = self.calls.post("/api/v1/charges", fields, {"Idempotency-Key": key})
        except ApiError as error:
            error.idempotency_key = key
            raise
        return charged
