"""Checkouts for those who don't want to sign a form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import uuid4

from paydesk_client.calls import ApiError, Calls
from paydesk_client.idempotency import checked


@dataclass(frozen=True, slots=True)
class Checkouts:
    """The checkouts of one merchant."""

    calls: Calls

    def create(
        self,
        merchant_order_id: str,
        amount: str | int | Decimal,
        currency: str,
        description: str,
        *,
        line_items: Sequence[Mapping[str, Any]] = (),
        idempotency_key: str | None = None,
        **fields: str,
    ) -> dict[str, Any]:
        """Make a checkout; send the customer to the `url` of the answer. Moves no money.

        Give an `idempotency_key` of your own for each checkout that you mean to make: called again
        with the same one, after an error or no answer, it is the same checkout. Without one a key
        is drawn for each call, and an ApiError has it as `idempotency_key`.

        Args: amount and each item's `unit_price` are text, int or Decimal, never a float;
            line_items have `name`, `unit_price`, and if you like `quantity` and `picture_url`, and
            cost `amount` in all; fields are what else a form may have, such as `success_url`,
            `email`, or `recurring_name`.
        Returns: `id`, `url`, `status`, `expires_at`, and each item with its `picture_problem` if
            its picture could not be had.
        Raises: ApiError, with status 400 for a field that is unknown or wrong, 409 if the account
            takes no live payments, 0 if no answer came; TypeError for an amount of another type;
            ValueError for a key that no header can carry.
        """
        sent: dict[str, Any] = {
            "merchant_order_id": merchant_order_id,
            "amount": _amount(amount, "amount"),
            "currency": currency,
            "description": description,
            **fields,
        }
        if line_items:
            sent["line_items"] = [
                {**one, "unit_price": _amount(one.get("unit_price"), "unit_price")} for one in line_items
            ]
        key = str(uuid4()) if idempotency_key is None else checked(idempotency_key)
        try:
            made: dict[str, Any] = self.calls.post("/api/v1/checkouts", sent, {"Idempotency-Key": key})
        except ApiError as error:
            error.idempotency_key = key
            raise
        return made


def _amount(value: object, name: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise TypeError(f'{name} is a {type(value).__name__}; give it as text or Decimal, such as "4.00"')
    return format(value, "f") if isinstance(value, Decimal) else str(value)
