"""What stands with a purchase at an acquirer says whose it is,
whatever the shop's references look like.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.adapters.acquirers.counters import NOON

from paydesk.adapters.acquirers.marks import MOST_BYTES, Mark, PurchaseKind, packed, shortened, unpacked
from paydesk.adapters.acquirers.stripe.objects import mark_of, metadata_of

RENEWAL = Mark(
    deployment="d" * 32,
    epoch=2**31 - 1,
    merchant="m" * 32,
    live=True,
    kind=PurchaseKind.RENEWAL,
    order="order-1",
    payment_id=2**53 - 1,
    attempt=9999,
    subscription_id=2**53 - 1,
    period=3660,
    terms="f" * 16,
)
LONGEST = ["x" * 255, "ß" * 255, "注" * 255, '"' * 255, "\\" * 255]


@pytest.mark.parametrize("order", ["order-1", "", *LONGEST])
def test_a_packed_mark_has_everything_and_fits(order: str) -> None:
    mark = replace(RENEWAL, order=order)
    assert len(packed(mark).encode()) <= MOST_BYTES
    assert unpacked(packed(mark)) == mark


def test_a_reference_too_heavy_for_the_acquirer_is_still_told_from_others() -> None:
    one, other = (replace(RENEWAL, order="🧾" * 254 + end) for end in "ab")
    assert len(packed(one).encode()) <= MOST_BYTES
    found = unpacked(packed(one))
    assert found is not None
    assert found.order == shortened(one.order)
    assert one.is_of(found)
    assert not other.is_of(found)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '["paydesk1"]', '["other",1]', '["paydesk1",1,2,3,4,5,6,7,8,9,10,11]', "7"]
)
def test_what_is_none_of_ours_is_no_mark(text: str) -> None:
    assert unpacked(text) is None


@pytest.mark.parametrize(
    "changed",
    [{"merchant": "n" * 32}, {"live": False}, {"order": "order-2"}, {"period": 4}, {"terms": "0" * 16}],
)
def test_another_wish_is_another(changed: dict[str, object]) -> None:
    assert not RENEWAL.is_of(replace(RENEWAL, **changed))  # type: ignore[arg-type]


def test_the_same_wish_of_a_database_that_was_put_back_is_the_same() -> None:
    assert RENEWAL.is_of(replace(RENEWAL, epoch=1, payment_id=18, subscription_id=8, attempt=1))


@pytest.mark.parametrize("order", ["order-1", *LONGEST, "🧾" * 255])
def test_stripe_keeps_it_within_its_limits(order: str) -> None:
    mark = replace(RENEWAL, order=order)
    metadata = metadata_of("k" * 36, NOON, mark)
    assert len(metadata) <= 50
    assert all(len(name) <= 40 for name in metadata)
    assert all(len(text.encode("utf-16-le")) // 2 <= 500 for text in metadata.values())
    found = mark_of(metadata)
    assert found is not None
    assert mark.is_of(found)
    assert found.payment_id == mark.payment_id
