"""Files of an answer: added to the draft, handed over with it, and erased with its purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest
from PIL import Image
from tests import breaking
from tests.banks import answering, ending_in
from tests.core.documents import document, hostile
from tests.domain.chargebacks.test_giving_evidence import at_bank, disputed, state
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.disputes import EvidenceFile, EvidenceKind
from paydesk.adapters.acquirers.hosted_pages import Capabilities
from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound, Unavailable
from paydesk.domain.chargebacks import evidence_files, giving_evidence, uploading
from paydesk.domain.chargebacks.evidence_files import (
    KEPT_FOR,
    MOST_BYTES,
    add_file,
    erase_past_files,
    find_file,
    list_files,
    remove_file,
)
from paydesk.domain.chargebacks.for_api import reference_of
from paydesk.domain.chargebacks.giving_evidence import PATIENCE, find_answer, give_evidence
from paydesk.domain.chargebacks.states import EvidenceState
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.privacy.belongings import Subject
from paydesk.domain.privacy.erasing import erase
from paydesk.domain.privacy.exporting import export
from paydesk.domain.test_clock.resetting import reset_test_side

__all__ = ["database", "database_url", "disputed"]

NOISE = 1200
RECEIPT, DELIVERY, OTHER = EvidenceKind.RECEIPT, EvidenceKind.DELIVERY, EvidenceKind.OTHER


def picture(side: int = 40, kind: str = "JPEG", noise: bool = False) -> bytes:
    written = BytesIO()
    made = Image.effect_noise((side, side), 90) if noise else Image.new("RGB", (side, side), "green")
    made.save(written, kind)
    return written.getvalue()


async def add(desk: Desk, shop: Shop, disputed: int, kind: EvidenceKind, content: bytes, name: str = "a.jpg") -> int:
    await add_file(desk, shop, disputed, kind, name, content, now=utc_now())
    return (await list_files(desk.database, shop, disputed))[-1].id


async def at_the_bank(desk: Desk, shop: Shop, disputed: int, bank: Bank) -> dict[str, str]:
    """What the bank's record has of the dispute's files: media types by what they show."""
    _, reference = await reference_of(desk.database, shop, disputed)
    return {one.kind: one.media_type for one in bank.record.evidence.of_dispute(reference)}


async def test_files_go_to_the_bank_with_the_answer_that_names_them(
    desk: Desk, shop: Shop, disputed: int, bank: Bank
) -> None:
    await add(desk, shop, disputed, DELIVERY, hostile(), "C:\\scans\\note 4242 4242 4242 4242.PDF")
    await add(desk, shop, disputed, RECEIPT, picture(), "re\u202ece/ipt.jpeg")
    note, receipt = await list_files(desk.database, shop, disputed)
    assert (note.kind, note.media_type, note.pages) == (DELIVERY, "application/pdf", 1)
    assert note.name.startswith("note")
    assert note.name.endswith(".pdf")
    assert "4242 4242" not in note.name, "no card number rests anywhere"
    assert receipt.name == "ipt.jpg"
    kept = await find_file(desk.database, shop, disputed, note.id)
    assert b"JavaScript" not in kept.content
    assert await at_the_bank(desk, shop, disputed, bank) == {}
    await give_evidence(desk, shop, disputed, "Delivered", now=utc_now(), once=True)
    given = await at_the_bank(desk, shop, disputed, bank)
    assert given == {"delivery": "application/pdf", "receipt": "image/jpeg"}
    assert [one.is_uploaded for one in await list_files(desk.database, shop, disputed)] == [True, True]
    for change in (add(desk, shop, disputed, OTHER, picture()), remove_file(desk, shop, disputed, note.id)):
        with pytest.raises(Conflict, match="has the evidence already"):
            await change


async def test_a_file_can_be_removed_and_another_take_its_place(desk: Desk, shop: Shop, disputed: int) -> None:
    first = await add(desk, shop, disputed, RECEIPT, picture())
    with pytest.raises(Conflict, match="of this kind already"):
        await add(desk, shop, disputed, RECEIPT, picture())
    await remove_file(desk, shop, disputed, first)
    with pytest.raises(NotFound):
        await remove_file(desk, shop, disputed, first)
    with pytest.raises(NotFound):
        await find_file(desk.database, shop, disputed, first)
    assert await add(desk, shop, disputed, RECEIPT, picture()) != first


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "choose a file"),
        (b"GIF89a", "must be a PDF"),
        (b"<svg onload=alert(1)>", "must be a PDF"),
        (b"PK\x03\x04", "must be a PDF"),
        (b"%PDF-1.7", "can't be read"),
        (b"\x89PNG\r\n\x1a\n", "must be a PNG"),
        (document(51), "51 pages"),
        (b"%PDF-" + bytes(8_000_001), "8001 kB"),
    ],
)
async def test_what_is_no_file_for_a_bank_is_refused_at_its_field(
    desk: Desk, shop: Shop, disputed: int, content: bytes, why: str
) -> None:
    with pytest.raises(Malformed, match=why) as caught:
        await add(desk, shop, disputed, RECEIPT, content)
    assert caught.value.fields == ("file",)
    assert await list_files(desk.database, shop, disputed) == []


async def test_all_together_are_no_more_than_the_bank_takes(
    desk: Desk, shop: Shop, disputed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_files, "MOST_BYTES", 1000 * NOISE)
    await add(desk, shop, disputed, RECEIPT, document(30))
    with pytest.raises(Malformed, match="all have 51 pages"):
        await add(desk, shop, disputed, DELIVERY, document(21))
    large = picture(NOISE, noise=True)
    pressed = [add(desk, shop, disputed, kind, large) for kind in (DELIVERY, OTHER)]
    came_of = await asyncio.gather(*pressed, return_exceptions=True)
    assert [type(one) for one in came_of if isinstance(one, Exception)] == [Malformed], "both at once are too large"
    assert sum(one.size for one in await list_files(desk.database, shop, disputed)) <= 1000 * NOISE < MOST_BYTES


@pytest.mark.parametrize("came_through", [True, False])
async def test_an_upload_whose_answer_was_lost_is_repeated_and_is_the_same_file(
    desk: Desk, shop: Shop, disputed: int, bank: Bank, came_through: bool
) -> None:
    await add(desk, shop, disputed, RECEIPT, picture())
    honest, submitted = desk.acquirers["simulator"], ending_in(AssertionError("submitted without its file"))

    async def lose(file: EvidenceFile) -> str:
        if came_through:
            await honest.upload_evidence(file)
        raise OutcomeUnknown("no answer")

    losing = at_bank(desk, upload_evidence=lose, submit_evidence=submitted)
    with pytest.raises(Unavailable, match="has no answer yet"):
        await give_evidence(losing, shop, disputed, "one", now=utc_now(), once=True)
    assert await state(desk, shop, disputed) is EvidenceState.REFUSED, "it may be changed and sent again"
    await give_evidence(desk, shop, disputed, "two", now=utc_now(), once=True)
    assert await at_the_bank(desk, shop, disputed, bank) == {"receipt": "image/jpeg"}
    assert len(bank.record.evidence.files()) == 1


async def test_a_file_that_the_bank_refuses_can_be_removed(desk: Desk, shop: Shop, disputed: int, bank: Bank) -> None:
    added = await add(desk, shop, disputed, RECEIPT, picture())
    refusing = at_bank(desk, upload_evidence=ending_in(AcquirerRefused("too colourful")))
    with pytest.raises(Conflict, match="given nothing: too colourful"):
        await give_evidence(refusing, shop, disputed, "one", now=utc_now(), once=True)
    await remove_file(desk, shop, disputed, added)
    await give_evidence(refusing, shop, disputed, "two", now=utc_now(), once=True)
    assert await at_the_bank(desk, shop, disputed, bank) == {}


async def test_while_nobody_knows_whether_the_bank_has_the_answer_its_files_stay(
    desk: Desk, shop: Shop, disputed: int, bank: Bank
) -> None:
    added = await add(desk, shop, disputed, RECEIPT, picture())
    honest = desk.acquirers["simulator"]

    async def lose(reference: str, text: str, files: Mapping[EvidenceKind, str]) -> None:
        await honest.submit_evidence(reference, text, files)
        raise OutcomeUnknown("no answer")

    with pytest.raises(Unavailable):
        await give_evidence(at_bank(desk, submit_evidence=lose), shop, disputed, "one", now=utc_now(), once=True)
    for change in (add(desk, shop, disputed, OTHER, picture()), remove_file(desk, shop, disputed, added)):
        with pytest.raises(Conflict, match="nobody knows"):
            await change
    with pytest.raises(Conflict, match="came through"):
        await give_evidence(desk, shop, disputed, "two", now=utc_now(), once=True)
    assert await at_the_bank(desk, shop, disputed, bank) == {"receipt": "image/jpeg"}


POINTS = ("after the intent", "after the upload", "after it is noted", "after the submission")


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_any_point_the_bank_gets_the_answer_once_with_each_file_once(
    desk: Desk, shop: Shop, disputed: int, bank: Bank, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    for kind in (RECEIPT, DELIVERY):
        await add(desk, shop, disputed, kind, picture())
    honest = desk.acquirers["simulator"]

    async def killed(*_asked: Any, **_named: Any) -> Any:
        raise KeyboardInterrupt

    async def upload(file: EvidenceFile) -> str:
        await honest.upload_evidence(file)
        raise KeyboardInterrupt

    calls: dict[str, Any] = {
        "after the intent": {"upload_evidence": killed},
        "after the upload": {"upload_evidence": upload},
        "after it is noted": {"submit_evidence": killed},
        "after the submission": {},
    }
    with monkeypatch.context() as dying:
        if point == "after the submission":
            dying.setattr(giving_evidence.queries, "evidence_ended", killed)
        with pytest.raises(KeyboardInterrupt):
            await give_evidence(at_bank(desk, **calls[point]), shop, disputed, "one", now=utc_now(), once=True)
    with pytest.raises(Conflict, match="being handed to the bank just now"):
        await give_evidence(desk, shop, disputed, "one", now=utc_now(), once=True)
    about, long_ago = {"id": disputed}, utc_now() - PATIENCE - timedelta(seconds=1)
    await breaking.say(desk.database, "chargeback", about, evidence_tried_at=long_ago)
    again = give_evidence(desk, shop, disputed, "one", now=utc_now(), once=True)
    if point == "after the submission":
        with pytest.raises(Conflict, match="came through"):
            await again
    else:
        await again
    assert (await find_answer(desk, shop, disputed)).evidence_state is EvidenceState.SENT
    assert await at_the_bank(desk, shop, disputed, bank) == {"receipt": "image/jpeg", "delivery": "image/jpeg"}
    assert len(bank.record.evidence.files()) == 2
    assert len([one for one in bank.record.operations() if one.kind == "evidence"]) == 1


async def test_no_file_comes_into_an_answer_that_is_being_handed_over(
    desk: Desk, shop: Shop, disputed: int, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = uploading.queries.files_to_hand_over

    async def too_late(*asked: Any, **named: Any) -> Any:
        with pytest.raises(Conflict, match="being handed to the bank"):
            await add(desk, shop, disputed, RECEIPT, picture())
        async for row in honest(*asked, **named):
            yield row

    monkeypatch.setattr(uploading.queries, "files_to_hand_over", too_late)
    await give_evidence(desk, shop, disputed, "one", now=utc_now(), once=True)
    assert await at_the_bank(desk, shop, disputed, bank) == {}


async def test_where_no_files_are_taken_none_is_stored(desk: Desk, shop: Shop, disputed: int) -> None:
    bank = answering(desk.acquirers["simulator"])
    bank.capabilities = Capabilities()
    plain = replace(desk, acquirers={**desk.acquirers, "simulator": bank})
    with pytest.raises(Conflict, match="takes no files"):
        await add(plain, shop, disputed, RECEIPT, picture())


async def test_files_of_another_merchant_do_not_exist(desk: Desk, shop: Shop, other_shop: Shop, disputed: int) -> None:
    added = await add(desk, shop, disputed, RECEIPT, picture())
    assert await list_files(desk.database, other_shop, disputed) == []
    assert await list_files(desk.database, replace(shop, live=True), disputed) == []
    for asked in (
        find_file(desk.database, other_shop, disputed, added),
        find_file(desk.database, replace(shop, live=True), disputed, added),
        remove_file(desk, other_shop, disputed, added),
        add_file(desk, other_shop, disputed, OTHER, "a", picture(), now=utc_now()),
    ):
        with pytest.raises(NotFound):
            await asked
    assert len(await list_files(desk.database, shop, disputed)) == 1


async def test_long_after_the_end_of_a_dispute_its_files_are_erased(desk: Desk, shop: Shop, disputed: int) -> None:
    added = await add(desk, shop, disputed, RECEIPT, picture())
    await erase_past_files(desk.database, now=utc_now() + timedelta(days=900))
    assert await find_file(desk.database, shop, disputed, added), "it is not over"
    await breaking.say(desk.database, "chargeback", {"id": disputed}, state="lost", closed_at=utc_now())
    await erase_past_files(desk.database, now=utc_now() + KEPT_FOR - timedelta(minutes=1))
    assert await find_file(desk.database, shop, disputed, added), "a bank may take it up again"
    await erase_past_files(desk.database, now=utc_now() + KEPT_FOR + timedelta(minutes=1))
    with pytest.raises(NotFound):
        await find_file(desk.database, shop, disputed, added)
    (left,) = await list_files(desk.database, shop, disputed)
    assert (left.is_erased, left.name) == (True, "")


async def test_with_a_customer_go_the_files_of_their_disputes(desk: Desk, shop: Shop, disputed: int) -> None:
    added = await add(desk, shop, disputed, RECEIPT, picture(), "Ada's receipt.jpg")
    row = await desk.database.fetchrow(
        "select p.merchant_order_id from chargeback c join payment p on p.merchant_id = c.merchant_id"
        " and p.id = c.payment_id where c.id = $1", disputed,
    )  # fmt: skip
    assert row is not None
    subject = Subject(shop.merchant_id, order=row["merchant_order_id"])
    exported = (await export(desk.database, subject, now=utc_now()))["evidence_files"]
    assert [(one["kind"], one["name"]) for one in exported] == [("receipt", "Ada_s receipt.jpg")]
    await breaking.say(desk.database, "pingback", {"merchant_id": shop.merchant_id}, state="acknowledged")
    assert (await erase(desk.database, subject, now=utc_now())).rows["evidence_files"] == 1
    with pytest.raises(NotFound):
        await find_file(desk.database, shop, disputed, added)
    assert [one.name for one in await list_files(desk.database, shop, disputed)] == ["erased"]


async def test_with_the_test_side_go_its_files(desk: Desk, shop: Shop, disputed: int) -> None:
    await add(desk, shop, disputed, RECEIPT, picture())
    assert (await reset_test_side(desk.database, shop.merchant_id))["evidence_files"] == 1
    assert await list_files(desk.database, shop, disputed) == []
