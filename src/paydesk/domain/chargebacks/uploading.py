"""Handing an answer's files to the bank before the answer names them; each may be sent again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paydesk.adapters.acquirers.disputes import EvidenceFile, EvidenceKind
from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "evidence_files.sql")


@dataclass(frozen=True, slots=True)
class _ToHandOver:
    """A file; `content` is None once the acquirer has it, by `acquirer_name`."""

    id: int
    kind: EvidenceKind
    media_type: str
    content: bytes | None = field(repr=False)
    upload_key: str
    acquirer_name: str


async def upload_files(
    database: Database, shop: Shop, chargeback_id: int, acquirer: Acquirer
) -> Mapping[EvidenceKind, str]:
    """Hand over the files of an answer, and return what the acquirer calls each. Moves no money.

    The answer's intent must be written: from then on no file is added or removed. A file whose
    handing over nobody knows the end of is sent again under its key, and is the same file.
    Raises: AcquirerRefused, OutcomeUnknown; in either case the acquirer has no answer by this.
    """
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    rows = queries.files_to_hand_over(database, **side, chargeback_id=chargeback_id)
    names: dict[EvidenceKind, str] = {}
    for file in await records_of(_ToHandOver, rows):
        names[file.kind] = file.acquirer_name
        if file.content is not None:
            sent = EvidenceFile(file.upload_key, file.kind, file.media_type, file.content)
            names[file.kind] = await acquirer.upload_evidence(sent)
            await queries.file_uploaded(database, **side, id=file.id, acquirer_name=names[file.kind])
    return names
