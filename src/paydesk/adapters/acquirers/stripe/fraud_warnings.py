"""Early fraud warnings of Stripe's Radar, read from their own list: events of them may be lost.

Source: docs.stripe.com/api/radar/early_fraud_warnings; docs.stripe.com/disputes/measuring, "Early
    fraud warnings".
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
import structlog

from paydesk.adapters.acquirers.fraud_warnings import FraudWarning
from paydesk.adapters.acquirers.stripe.calls import Calls
from paydesk.adapters.acquirers.stripe.objects import KEY, mark_of

log = structlog.get_logger()

_PAGE: Final = 100
_MOST_PAGES: Final = 100
"""How many pages one look reads, the newest first: the account's share of Stripe's rate limits is
for payments."""


class _Of(msgspec.Struct, frozen=True):
    """What is read of a warning's payment, which may be anybody's."""

    metadata: dict[str, str] | None = None


class _Warning(msgspec.Struct, frozen=True):
    """A warning, with the payment that it is of."""

    id: str
    actionable: bool
    fraud_type: str = ""
    payment_intent: _Of | str | None = None


class _WarningList(msgspec.Struct, frozen=True):
    """A page of warnings, the newest first."""

    data: list[_Warning]
    has_more: bool = False


class FraudWarnings:
    """Reads what issuers say of payments."""

    def __init__(self, calls: Calls) -> None:
        self._calls: Final = calls

    async def since(self, since: datetime) -> tuple[FraudWarning, ...]:
        """The warnings of our payments since a time, the newest first. Moves no money.

        Raises: AcquirerRefused if the account's key may not read them, OutcomeUnknown.
        """
        found: list[FraudWarning] = []
        asked: dict[str, object] = {
            "limit": _PAGE,
            "created": {"gte": int(since.timestamp())},
            "expand": ["data.payment_intent"],
        }
        for _ in range(_MOST_PAGES):
            page = await self._calls.ask(self._calls.v1.radar.early_fraud_warnings.list_async(asked), _WarningList)
            found += [warning for one in page.data if (warning := _warning(one)) is not None]
            if not page.has_more or not page.data:
                return tuple(found)
            asked["starting_after"] = page.data[-1].id
        log.warning("more fraud warnings than are read: the oldest are left out", acquirer="stripe", read=len(found))
        return tuple(found)


def _warning(one: _Warning) -> FraudWarning | None:
    """A warning in our words, None if its payment is not ours."""
    said = (one.payment_intent.metadata if isinstance(one.payment_intent, _Of) else None) or {}
    if KEY not in said:
        return None
    mark = mark_of(said)
    return FraudWarning(one.id, said[KEY], mark.merchant if mark else "", one.fraud_type, one.actionable)
