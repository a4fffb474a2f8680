"""Coupons, which take something off the price of subscriptions."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from paydesk_client.calls import ApiError, Calls
from paydesk_client.idempotency import checked


@dataclass(frozen=True, slots=True)
class Coupons:
    """The coupons of one merchant."""

    calls: Calls

    def make(
        self,
        code: str,
        *,
        percent: str | int | Decimal | None = None,
        amount: str | int | Decimal | None = None,
        currency: str | None = None,
        periods: int | None = None,
        valid_from: int | str | None = None,
        valid_until: int | str | None = None,
        most_uses: int | None = None,
        most_per_customer: int | None = None,
        sku_ids: Sequence[str] = (),
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Make a coupon; called again, after an error or no answer, it is the same one, since its
        terms never change. Moves no money.

        Args: code is what customers type; give percent, or amount with currency; periods is for how
            many payments, all if left out; times are Unix seconds or ISO 8601.
        Returns: `id`, `code`, its terms, `active`, `uses`, and `created_at`.
        Raises: ApiError, with status 400 for terms that can't be, 409 if the code is that of a
            coupon with other terms, 0 if no answer came; TypeError for a float.
        """
        wanted: dict[str, Any] = {
            "percent": _written(percent, "percent"),
            "amount": _written(amount, "amount"),
            "currency": currency,
            "periods": periods,
            "valid_from": valid_from,
            "valid_until": valid_until,
            "most_uses": most_uses,
            "most_per_customer": most_per_customer,
            "sku_ids": list(sku_ids) or None,
        }
        sent = {"code": code} | {name: value for name, value in wanted.items() if value is not None}
        key = str(uuid4()) if idempotency_key is None else checked(idempotency_key)
        try:
            made: dict[str, Any] = self.calls.post("/api/v1/coupons", sent, {"Idempotency-Key": key})
        except ApiError as error:
            error.idempotency_key = key
            raise
        return made

    def switch_off(self, coupon_id: int | str) -> dict[str, Any]:
        """Let nobody use a coupon any more; who has used it keeps what they agreed to. Once more
        changes nothing.

        Returns: the coupon.
        Raises: ApiError, with status 404 if the merchant has no such coupon, 0 if no answer came.
        """
        path = f"/api/v1/coupons/{quote(str(coupon_id), safe='')}/switch_off"
        switched: dict[str, Any] = self.calls.post(path)
        return switched


def _written(value: object, name: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise TypeError(f'{name} is a {type(value).__name__}; give it as text or Decimal, such as "12.5"')
    return format(value, "f") if isinstance(value, Decimal) else str(value)
