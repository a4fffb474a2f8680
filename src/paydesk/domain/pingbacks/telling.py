"""Saying in the log what came of a request to a merchant's server, for who reads along."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec

from paydesk.adapters.outbound import Answer
from paydesk.domain.pingbacks.recording import is_acknowledged


def tell(log: Any, event: str, payload: str, url: str, answer: Answer) -> None:
    """Say what a pingback was about, where it went and what came of it; nothing of a customer,
    and of the URL not what may be a secret in it.
    """
    envelope = msgspec.json.decode(payload)
    address = urlsplit(url)
    log.debug(
        event,
        about=envelope.get("event", ""),
        order=envelope.get("payment_order", {}).get("merchant_order_id", ""),
        url=f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}",
        status=answer.status,
        why=answer.error or "",
        acknowledged=is_acknowledged(answer),
        ms=round(answer.duration * 1000),
    )
