from __future__ import annotations

import re
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domain.deliveries.conftest import SHIPPED

from paydesk.core.errors import Malformed
from paydesk.domain.deliveries.confirmations import ADDRESS_FIELDS, LONGEST, all_wrong, read_delivery, read_order
from paydesk.domain.deliveries.delivery_status import (
    DELIVERY_TRANSITIONS,
    TAKES_MONEY,
    DeliveryStatus,
    GoodsType,
    furthest,
)


def refused(words: str, **fields: Any) -> None:
    with pytest.raises(Malformed, match=re.escape(words)):
        read_delivery({**SHIPPED, **fields})


class TestTracking:
    @pytest.mark.parametrize("unknown", ["", "N/A", "n/a", None, "  "])
    def test_a_shipment_needs_number_carrier_and_link(self, unknown: str | None) -> None:
        refused("carrier_tracking_id is missing", carrier_tracking_id=unknown)
        refused("carrier_type is missing", carrier_type=unknown)
        refused("carrier_tracking_url is missing", carrier_type="My cousin", carrier_tracking_url=unknown)
        assert read_delivery({**SHIPPED, "carrier_tracking_url": unknown}).tracking_url.startswith(
            "https://www.dhl.com/"
        )

    def test_a_given_link_counts_more_than_a_derived_one(self) -> None:
        url = "http://track.example/1?x=ü"
        assert read_delivery({**SHIPPED, "carrier_tracking_url": url}).tracking_url == url

    @pytest.mark.parametrize(
        "url",
        [
            *(
                "javascript:alert(1)",
                "data:text/html,x",
                "ftp://x.example/1",
                "/relative",
                "http://",
                "https://:99999/",
            ),
            *("http://me:pw@x.example/", "https://a b/", "http://x.example/\r\nSet-Cookie: a", "file:///etc/passwd"),
        ],
    )
    def test_a_link_is_an_honest_web_address_whatever_the_status(self, url: str) -> None:
        for status in DeliveryStatus:
            with pytest.raises(Malformed):
                read_delivery({**SHIPPED, "status": str(status), "carrier_tracking_url": url})

    @pytest.mark.parametrize("status", ["order_placed", "delivered"])
    def test_nothing_else_needs_any_of_it(self, status: str) -> None:
        read = read_delivery({"status": status})
        assert (read.carrier, read.tracking_id, read.tracking_url, read.type) == ("", "", "", GoodsType.PHYSICAL)


class TestFields:
    @pytest.mark.parametrize("status", [None, "", "N/A"])
    def test_a_missing_status_is_told(self, status: str | None) -> None:
        refused("status is missing; expected order_placed, order_shipped, delivered", status=status)

    def test_an_unknown_word_is_told_with_those_that_are_known(self) -> None:
        refused('status "shipped" is unknown; expected order_placed, order_shipped, delivered', status="shipped")
        refused('type "virtual" is unknown; expected physical, digital', type="virtual")

    @pytest.mark.parametrize("name", ["status", "details", "carrier_type", "refundable", "estimated_delivery_datetime"])
    @pytest.mark.parametrize("value", [["a"], {"a": "b"}, [], {}])
    def test_a_list_where_one_value_belongs(self, name: str, value: Any) -> None:
        refused(f"{name} must be a single value", **{name: value})

    @pytest.mark.parametrize("name", [name for name in LONGEST if name not in ("attachments", "shipping_address")])
    def test_too_long_a_text(self, name: str) -> None:
        read = read_order if name in ("merchant_reference_id", "merchant_order_id") else read_delivery
        text = "http://x.example/" + "a" * LONGEST[name] if name.endswith("url") else "a" * (LONGEST[name] + 1)
        with pytest.raises(Malformed, match=f"{name} has .* characters, at most {LONGEST[name]}"):
            read({**SHIPPED, name: text})

    @pytest.mark.parametrize("bad", ["a\x00b", "a\x1bb", "a\ud800b"])
    @pytest.mark.parametrize("name", ["details", "carrier_type", "carrier_tracking_id", "product_description"])
    def test_what_can_not_be_kept_as_text(self, name: str, bad: str) -> None:
        with pytest.raises(Malformed):
            read_delivery({**SHIPPED, name: bad})

    def test_lines_may_stand_in_longer_texts(self) -> None:
        assert read_delivery({**SHIPPED, "details": "one\r\ntwo"}).details == "one\r\ntwo"

    @pytest.mark.parametrize(
        ("written", "read"),
        [
            (True, True),
            ("1", True),
            ("TRUE", True),
            (1, True),
            (False, False),
            ("0", False),
            ("N/A", None),
            (None, None),
        ],
    )
    def test_yes_and_no_in_every_way(self, written: Any, read: bool | None) -> None:
        assert read_delivery({**SHIPPED, "refundable": written}).refundable is read
        refused('notify_user "maybe" is neither true nor false', notify_user="maybe")

    @pytest.mark.parametrize(
        ("written", "read"),
        [
            ("2020-02-14 11:41:14 +0530", "2020-02-14T06:11:14+00:00"),
            ("2020-02-14 11:41:14 -05:00", "2020-02-14T16:41:14+00:00"),
            ("2020-02-14T11:41:14Z", "2020-02-14T11:41:14+00:00"),
            ("2020-02-14 11:41:14", "2020-02-14T11:41:14+00:00"),
            ("2020-02-14", "2020-02-14T00:00:00+00:00"),
        ],
    )
    def test_a_moment_as_clients_write_it(self, written: str, read: str) -> None:
        moment = read_delivery({**SHIPPED, "estimated_delivery_datetime": written}).estimated_at
        assert moment is not None
        assert moment.isoformat() == read

    @pytest.mark.parametrize("written", ["soon", "14.02.2020", "0001-01-01", "9999-12-31 23:59:59 -1200", "1" * 300])
    def test_no_moment_at_all(self, written: str) -> None:
        refused("is no moment", estimated_delivery_datetime=written)

    def test_an_address_keeps_its_known_parts(self) -> None:
        given = {**{name: f"the {name}" for name in ADDRESS_FIELDS}, "state": "N/A", "planet": "Earth", "phone": None}
        address = read_delivery({**SHIPPED, "shipping_address": given}).shipping_address
        assert address == {name: f"the {name}" for name in ADDRESS_FIELDS if name not in ("state", "phone")}
        nothings: list[Any] = ["N/A", "", None, {}, [], {"city": "N/A"}]
        for nothing in nothings:
            assert read_delivery({**SHIPPED, "shipping_address": nothing}).shipping_address is None

    @pytest.mark.parametrize("value", ["London", ["London"], {"city": ["London"]}, {"city": "a" * 256}])
    def test_an_address_that_is_none(self, value: Any) -> None:
        refused("shipping_address", shipping_address=value)

    def test_attachments_are_texts_or_mappings_of_texts(self) -> None:
        read = read_delivery({**SHIPPED, "attachments": ["a", "N/A", {"url": "b", "note": None}, {"x": "N/A"}]})
        assert read.attachments == ("a", {"url": "b"})
        assert read_delivery({**SHIPPED, "attachments": "a"}).attachments == ("a",)
        assert read_delivery({**SHIPPED, "attachments": {"0": "a", "x": "b"}}).attachments == ("a", "b")
        refused("attachments must be a single value", attachments=[["a"]])
        refused("attachments has 51 items", attachments=["a"] * 51)


class TestTheOrder:
    @pytest.mark.parametrize("written", [7, "7", " 7 "])
    def test_an_id_as_number_or_text(self, written: Any) -> None:
        assert read_order({"payment_order_id": written}).payment_id == 7

    @pytest.mark.parametrize("written", ["-1", "0", "7.0", "1e3", "٧", str(2**53), "1" * 5000, "yes"])
    def test_what_is_no_id(self, written: Any) -> None:
        with pytest.raises(Malformed, match="is no id"):
            read_order({"payment_order_id": written})

    def test_neither_id_nor_reference(self) -> None:
        with pytest.raises(Malformed, match="payment_order_id is missing"):
            read_order({"payment_order_id": "N/A", "merchant_reference_id": "n/a"})

    def test_two_names_for_two_references(self) -> None:
        assert read_order({"merchant_reference_id": "A", "merchant_order_id": "A"}).reference == "A"
        with pytest.raises(Malformed, match="differ"):
            read_order({"merchant_reference_id": "A", "merchant_order_id": "B"})

    @pytest.mark.parametrize("written", ["0", "-1", "NaN", "Infinity", "ten", "1" * 41, "1e30"])
    def test_what_is_no_number(self, written: str) -> None:
        for name in ("amount", "quantity"):
            with pytest.raises(Malformed, match=f"{name} .* is not a number above 0"):
                read_order({"payment_order_id": 1, name: written})
        assert read_order({"payment_order_id": 1, "amount": Decimal("9.5")}).amount == Decimal("9.5")


class TestTheDigest:
    def test_it_is_the_same_for_the_same_and_different_for_each_difference(self) -> None:
        first = read_delivery(SHIPPED)
        assert read_delivery({**SHIPPED, "reason": "N/A", "hash": "x", "type": "Physical"}).digest() == first.digest()
        differences: list[dict[str, Any]] = [
            {"carrier_tracking_id": "2"}, {"details": "x"}, {"reason": "x"}, {"refundable": "1"}, {"refundable": "0"},
            {"attachments": ["x"]}, {"shipping_address": {"city": "x"}}, {"shipping_address": {"state": "x"}},
            {"estimated_delivery_datetime": "2020-01-01"}, {"type": "digital"}, {"status": "delivered"},
        ]  # fmt: skip
        digests = {read_delivery({**SHIPPED, **one}).digest() for one in differences} | {first.digest()}
        assert len(digests) == len(differences) + 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.decimals() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*SHIPPED, *LONGEST, "payment_order_id", "amount", "refundable"]), VALUES))
def test_whatever_comes_is_read_or_refused(fields: Any) -> None:
    for read in (read_order, read_delivery):
        with suppress(Malformed):
            read({**SHIPPED, **fields})


@given(st.dictionaries(st.sampled_from([*SHIPPED, *LONGEST, "refundable"]), VALUES))
def test_all_that_is_wrong_begins_with_what_is_refused_first(fields: Any) -> None:
    wrong = all_wrong({**SHIPPED, **fields})
    names = [error.fields[0] for error in wrong]
    assert len(set(names)) == len(names)
    if wrong:
        with pytest.raises(Malformed, match=re.escape(wrong[0].message)):
            read_delivery({**SHIPPED, **fields})
    else:
        read_delivery({**SHIPPED, **fields})


def test_each_field_that_is_wrong_is_named_once() -> None:
    said = {"status": "eaten", "carrier_type": "x" * 101, "carrier_tracking_url": "parcels", "details": "a\x01b"}
    names = [error.fields[0] for error in all_wrong(said)]
    assert names == ["status", "carrier_type", "carrier_tracking_url", "details"]
    missing = [error.fields[0] for error in all_wrong({"status": "order_shipped"})]
    assert missing == ["carrier_tracking_id", "carrier_type"]


class TestStates:
    def test_the_table_speaks_of_every_status(self) -> None:
        assert set(DELIVERY_TRANSITIONS) == set(DeliveryStatus)
        assert {status for status, _ in TAKES_MONEY} == {DeliveryStatus.ORDER_SHIPPED, DeliveryStatus.DELIVERED}
        assert (DeliveryStatus.DELIVERED, GoodsType.PHYSICAL) not in TAKES_MONEY

    @pytest.mark.parametrize(
        ("said", "reached"),
        [
            ([], None),
            (["order_placed"], "order_placed"),
            (["order_placed", "order_shipped", "order_shipped"], "order_shipped"),
            (["delivered", "order_shipped", "order_placed"], "delivered"),
            (["order_shipped", "order_placed"], "order_shipped"),
        ],
    )
    def test_late_word_moves_the_goods_nowhere(self, said: list[str], reached: str | None) -> None:
        assert furthest(map(DeliveryStatus, said)) == reached
