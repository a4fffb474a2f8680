"""The files of an answer to a dispute as both consoles show them: a list, and downloads."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from starlette.responses import Response

from paydesk.adapters.acquirers.disputes import EvidenceKind
from paydesk.domain.chargebacks.evidence_files import find_file
from paydesk.domain.merchants.shop import Shop
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

KINDS: Mapping[EvidenceKind, str] = {
    EvidenceKind.RECEIPT: mark("A receipt that the customer was sent"),
    EvidenceKind.DELIVERY: mark("Delivery: a label, a signed note"),
    EvidenceKind.MESSAGES: mark("Messages with the customer"),
    EvidenceKind.SERVICE: mark("That a service was provided"),
    EvidenceKind.SIGNATURE: mark("The customer's signature"),
    EvidenceKind.REFUND_TERMS: mark("Your terms of refunds"),
    EvidenceKind.CANCELLATION_TERMS: mark("Your terms of cancellation"),
    EvidenceKind.OTHER_PAYMENT: mark("That a payment like it was another one"),
    EvidenceKind.OTHER: mark("Something else"),
}
"""What a file shows."""

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
"""What a browser does with a file of strangers: keep it nowhere, take it for nothing else, run
nothing of it."""


async def download(visit: Visit, shop: Shop, chargeback_id: int, file_id: int) -> Response:
    """A file, to be saved and never shown in the browser. Raises: NotFound."""
    found = await find_file(visit.database, shop, chargeback_id, file_id)
    plain = found.name.encode("ascii", "replace").decode().replace("?", "_")
    named = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(found.name, safe='')}"
    return Response(found.content, media_type=found.media_type, headers={**_HEADERS, "Content-Disposition": named})
