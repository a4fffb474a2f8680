"""Behind the shop's counter: an order is marked as shipped, money is given back,
each through the client library.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from paydesk.web.demo.memory import Records
from paydesk.web.demo.orders import Call, Sheet
from paydesk_client import ApiError, Gateway

CARRIERS: Final = ("DHL", "DPD", "FedEx", "GLS", "Royal Mail", "UPS", "USPS")
"""Carriers whose tracking link Paydesk knows, so that the shop need not send one."""

EXAMPLE_TRACKING_ID: Final = "00340434161094021501"
_LONGEST: Final = 60
_TAKEN = {
    "captured": "Paydesk took the money.",
    "processing": "Paydesk is taking the money; whether the bank gives it is not known yet.",
    "recorded": "Paydesk noted it; no money had to move.",
}


@dataclass(frozen=True, slots=True)
class Counter:
    """What the shop's staff can do with an order;
    `gateway` has the key pair that the order was sold under.
    """

    gateway: Gateway
    records: Records
    clock: Callable[[], datetime]

    async def ship(self, sheet: Sheet, carrier: str, tracking_id: str) -> None:
        """Tell Paydesk that the goods are on their way, which takes the money; safe to repeat."""
        carrier, tracking_id = carrier.strip()[:_LONGEST], tracking_id.strip()[:_LONGEST]

        def confirm() -> dict[str, object]:
            return self.gateway.deliveries().confirm(
                sheet.first_payment, "order_shipped", carrier_type=carrier, carrier_tracking_id=tracking_id
            )

        await self._call(sheet, "shipment", f"{carrier} {tracking_id}", confirm, _shipped)

    async def refund(self, sheet: Sheet, amount: str, key: str) -> None:
        """Give an amount back, or all that is left if it is empty;
        the same key twice moves money once.
        """
        amount = amount.strip()[:_LONGEST]

        def give_back() -> dict[str, object]:
            return self.gateway.payments().refund(sheet.first_payment, amount or None, idempotency_key=key)

        await self._call(sheet, "refund", amount or "all that is left", give_back, _refunded)

    async def _call(
        self,
        sheet: Sheet,
        what: Literal["shipment", "refund"],
        sent: str,
        call: Callable[[], dict[str, object]],
        in_words: Callable[[Mapping[str, object]], str],
    ) -> None:
        """Call Paydesk off the loop, as the library blocks, and keep what it answered."""
        done, answered, reference_id = True, True, ""
        try:
            answer = await asyncio.to_thread(call)
            outcome, reference_id = in_words(answer), str(answer.get("reference_id", ""))
        except ApiError as error:
            done, answered, outcome = False, error.status != 0, f"Not done. Paydesk answered {error}"
            if not answered:
                outcome = f"Not known: {error}. Press the button again; nothing is done twice."
        if reference_id and any(known.reference_id == reference_id for known in sheet.calls):
            return
        await self.records.add_call(
            Call(self.clock(), sheet.order.reference, what, sent, outcome, done, answered, reference_id)
        )


def refund_key(sheet: Sheet) -> str:
    """The idempotency key of an order's next refund: a new one only when the last was answered."""
    answered = sum(call.what == "refund" and call.answered for call in sheet.calls)
    return f"{sheet.order.reference}-refund-{answered + 1}"


def _shipped(answer: Mapping[str, object]) -> str:
    return _TAKEN.get(str(answer.get("status")), "Paydesk noted it.")


def _refunded(answer: Mapping[str, object]) -> str:
    if answer.get("status") == "processing":
        return "Paydesk is giving it back; the bank has not answered yet, and the pingback follows."
    return f"Paydesk gave {answer.get('refund_amount')} {answer.get('currency')} back; the pingback follows."
