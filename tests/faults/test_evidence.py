"""Whoever hands an answer to a dispute over is killed at any point: the bank has it once, with each
of its files once.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from tests import breaking
from tests.core.documents import document
from tests.faults.customers import Plan
from tests.faults.plays import have_paid
from tests.faults.settling import Hereafter, hereafter
from tests.faults.stage import Cast, Order, Stage, staged
from tests.lengths import long

from paydesk.adapters.acquirers.disputes import EvidenceKind
from paydesk.adapters.acquirers.simulator.record import Kind, Record
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.domain.chargebacks.evidence_files import add_file, list_files
from paydesk.domain.chargebacks.for_api import find_chargeback, reference_of
from paydesk.domain.chargebacks.giving_evidence import PATIENCE, find_answer, give_evidence
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.chargebacks.states import EvidenceState
from paydesk.domain.merchants.shop import Shop

pytestmark = pytest.mark.faults

CHARGED_BACK = "4000000000000259"
POINTS = (
    "after chargebacks.record_evidence",
    "before bank.upload_evidence",
    "after bank.upload_evidence",
    "after evidence_files.file_uploaded",
    "before bank.submit_evidence",
    "after bank.submit_evidence",
    "after chargebacks.evidence_ended",
)
FILES = (EvidenceKind.RECEIPT, EvidenceKind.DELIVERY)


@long
async def test_killed_anywhere_the_bank_gets_the_answer_and_each_file_once(tmp_path: Path) -> None:
    async with staged(tmp_path, Cast()) as stage:
        for number in range(len(POINTS)):
            order = Order(f"socks-{number}", Plan((CHARGED_BACK,)))
            stage.expect(order)
            await have_paid(stage, order)
        async with hereafter(stage.settings) as later:
            await read_disputes(later.desk, now=utc_now())
            found = await later.database.fetch("select merchant_id, live, id from chargeback order by id")
            assert len(found) == len(POINTS)
            for point, (merchant_id, live, chargeback_id) in zip(POINTS, found, strict=True):
                shop = Shop(merchant_id, live)
                for kind in FILES:
                    await add_file(later.desk, shop, chargeback_id, kind, "note.pdf", document(), now=utc_now())
                await killed_at(stage, point, chargeback_id)
                await sent_again(later, shop, chargeback_id)
                await at_the_bank(stage, later, shop, chargeback_id)


async def killed_at(stage: Stage, point: str, chargeback_id: int) -> None:
    """The operator hands the merchant's text over by command, as far as the point."""
    stage.points.arm(point)
    asking = asyncio.create_task(stage.clerk.command("chargeback", "evidence", str(chargeback_id), "Delivered"))
    (await stage.points.stopped(point)).kill()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def sent_again(later: Hereafter, shop: Shop, chargeback_id: int) -> None:
    """The merchant sends it again, once nobody waits for the first any more; the bank is asked
    before it gets anything twice.
    """
    long_ago = utc_now() - PATIENCE - timedelta(seconds=1)
    await breaking.say(later.database, "chargeback", {"id": chargeback_id}, evidence_tried_at=long_ago)
    if (await find_answer(later.desk, shop, chargeback_id)).evidence_state is not EvidenceState.SENT:
        with suppress(Conflict):  # It came through.
            await give_evidence(later.desk, shop, chargeback_id, "Delivered", now=utc_now(), once=True)


async def at_the_bank(stage: Stage, later: Hereafter, shop: Shop, chargeback_id: int) -> None:
    """Bank and books say the same."""
    _, reference = await reference_of(later.database, shop, chargeback_id)
    record = Record(stage.record)
    given = record.evidence.of_dispute(reference)
    texts = [one.result for one in record.operations() if one.kind is Kind.EVIDENCE and one.reference == reference]
    came = len(record.evidence.files())
    record.close()
    assert texts == ["Delivered"]
    assert sorted(one.kind for one in given) == sorted(FILES)
    files = await list_files(later.database, shop, chargeback_id)
    assert [one.is_uploaded for one in files] == [True] * len(FILES)
    stored = await later.database.fetchval("select count(*) from evidence_file")
    assert came == stored, "no file came twice"
    assert (await find_answer(later.desk, shop, chargeback_id)).evidence_state is EvidenceState.SENT
    assert (await find_chargeback(later.database, shop, chargeback_id)).evidence == "Delivered"
