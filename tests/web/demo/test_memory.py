from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paydesk.web.demo import memory as module
from paydesk.web.demo.articles import ARTICLES
from paydesk.web.demo.memory import Records
from paydesk.web.demo.orders import Order, ReceivedPingback, new_order

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def an_order() -> Order:
    return new_order(ARTICLES["coffee"], "v1", NOON)


def a_pingback(number: int = 0, *, genuine: bool = True) -> ReceivedPingback:
    return ReceivedPingback(NOON + timedelta(seconds=number), "v1", (), f"body {number}", genuine, "Refused.")


def payment(order: Order) -> dict[str, Any]:
    told = {
        "merchant_order_id": order.reference,
        "status": "successful",
        "paid_amount": order.amount,
        "paid_currency": order.currency,
    }
    return {"event": "payment", "payment_order": told}


async def test_a_line_that_a_crash_cut_off_costs_only_itself(tmp_path: Path) -> None:
    kept, lost, later = an_order(), an_order(), an_order()
    records = Records(tmp_path)
    await records.add_order(kept)
    await records.add_order(lost)
    file = tmp_path / "shop.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    await Records(tmp_path).add_order(later)
    assert [sheet.order for sheet in Records(tmp_path).sheets()] == [later, kept]


async def test_the_oldest_unpaid_orders_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ORDERS", 3)
    records = Records(tmp_path)
    paid, *unpaid = [an_order() for _ in range(5)]
    await records.add_order(paid)
    await records.accept(a_pingback(), payment(paid))
    for order in unpaid:
        await records.add_order(order)
    expected = [unpaid[3], unpaid[2], paid]
    assert [sheet.order for sheet in records.sheets()] == expected
    assert [sheet.order for sheet in Records(tmp_path).sheets()] == expected


async def test_many_pingbacks_never_push_out_the_one_that_paid(tmp_path: Path) -> None:
    records, order = Records(tmp_path), an_order()
    await records.add_order(order)
    for number in range(30):
        await records.accept(a_pingback(number), payment(order))
    sheet = records.sheet(order.reference)
    assert sheet is not None
    assert sheet.paid
    assert len(sheet.pingbacks) == 20
    assert [one.body for one in sheet.pingbacks[:2]] == ["body 0", "body 11"]


async def test_refused_pingbacks_push_out_only_each_other(tmp_path: Path) -> None:
    records = Records(tmp_path)
    await records.accept(a_pingback(), {"event": "payment"})
    for number in range(1, 80):
        await records.refuse(a_pingback(number, genuine=False))
    strays = records.strays()
    assert len(strays) == 51
    assert strays[0].body == "body 79"
    assert strays[-1].genuine


async def test_the_file_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SPARE_LINES", 10)
    monkeypatch.setattr(module, "MOST_STRAYS", 5)
    records, order = Records(tmp_path), an_order()
    await records.add_order(order)
    await records.accept(a_pingback(), payment(order))
    for number in range(100):
        await records.refuse(a_pingback(number, genuine=False))
    assert len((tmp_path / "shop.jsonl").read_bytes().splitlines()) <= 25
    again = Records(tmp_path)
    assert again.sheets() == records.sheets()
    assert again.strays() == records.strays()


async def test_the_records_are_for_this_user_alone(tmp_path: Path) -> None:
    await Records(tmp_path / "deep" / "demo").add_order(an_order())
    assert (tmp_path / "deep" / "demo").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "deep" / "demo" / "shop.jsonl").stat().st_mode & 0o777 == 0o600


async def test_an_amount_keeps_its_digits(tmp_path: Path) -> None:
    order = msgspec.structs.replace(an_order(), amount=ARTICLES["pot"].price, currency="KWD")
    await Records(tmp_path).add_order(order)
    sheet = Records(tmp_path).sheet(order.reference)
    assert sheet is not None
    assert str(sheet.order.amount) == "12.500"


async def test_what_could_not_be_written_did_not_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records, order = Records(tmp_path), an_order()
    await records.add_order(order)

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", full)
        with pytest.raises(OSError, match="no space"):
            await records.accept(a_pingback(), payment(order))
    sheet = records.sheet(order.reference)
    assert sheet is not None
    assert not sheet.paid
    assert Records(tmp_path).sheets() == [sheet]
    assert (await records.accept(a_pingback(), payment(order))).fulfils
