"""Card numbers are found however they are written;
ids, telephone numbers, hashes and times are left alone.
"""

from __future__ import annotations

import random
import uuid
from decimal import Decimal

import pytest
from stdnum import luhn

from paydesk.adapters.acquirers.simulator import TEST_CARDS
from paydesk.core.card_numbers import MASK, holds_card_number, masked, masked_values
from paydesk.core.errors import Malformed
from paydesk.core.storable import refuse_card_number

VISA = "4242424242424242"
WRITINGS = [
    VISA,
    "4242 4242 4242 4242",
    "4242-4242-4242-4242",
    "4242.4242.4242.4242",
    "4242+4242+4242+4242",
    "4242%204242%204242%204242",
    "4242\u00a04242\u20114242 - 4242",
    "4 2 4 2 4 2 4 2 4 2 4 2 4 2 4 2",
    "４２４２　４２４２　４２４２　４２４２",
    "٤٢٤٢ ٤٢٤٢ ٤٢٤٢ ٤٢٤٢",
]


@pytest.mark.parametrize("number", [card.number for card in TEST_CARDS] + ["4716258050958645", "6304000000000000"])
def test_every_schemes_numbers_are_found(number: str) -> None:
    assert holds_card_number(number)


@pytest.mark.parametrize("written", WRITINGS)
@pytest.mark.parametrize("around", ["{}", "visa{}", "x{}x", "my card: {}.", "order 12 {} 09/30 123", '{{"n": "{}"}}'])
def test_it_is_found_however_it_is_written_and_wherever_it_stands(written: str, around: str) -> None:
    hidden = masked(around.format(written))
    assert MASK in hidden
    assert not any(part in hidden for part in (VISA, written, "4242", "４２４２"))


def test_what_stands_around_it_stays() -> None:
    assert masked(f"a {VISA} and 5555 5555 5555 4444, thanks") == f"a {MASK} and {MASK}, thanks"
    assert masked(f"{VISA}@example.com") == f"{MASK}@example.com"
    assert masked("nothing here") == "nothing here"


@pytest.mark.parametrize(
    "text",
    [
        "4242424242424243",
        "1234567890123456",
        "0000000000000000",
        "+4915112345678",
        "+49 1511 2345678",
        "1700000000000",
        "2026-11-21T12:34:56.789012+00:00",
        "2411221530001230",
        "114-3941689-8772232",
        "9400111899223197428490",
        "42424242",
        VISA * 2,
        f"{VISA}0000",
        "a3f" + VISA + "9bc77d0a1b2c3d4e",
        "c0ffee42-4242-4242-8242-424242424242",
    ],
)
def test_what_is_none_is_left_alone(text: str) -> None:
    assert masked(text) == text


def test_random_ids_keys_and_times_are_left_alone() -> None:
    chance = random.Random(7)
    for _ in range(3000):
        name = str(uuid.UUID(int=chance.getrandbits(128)))
        assert masked(name) == name
        digest = f"{chance.getrandbits(256):064x}"
        assert masked(digest) == digest
        at = str(1_700_000_000_000 + chance.randrange(10**11))
        assert masked(at) == at


def test_every_wrong_check_digit_is_left_alone() -> None:
    for digit in "013456789":
        assert not holds_card_number(VISA[:-1] + digit)


def test_values_of_any_depth_are_masked_and_their_names() -> None:
    given = {"a": [VISA, {VISA: 1}], "n": int(VISA), "d": Decimal(VISA), "b": True, "f": 1.5, "x": None}
    assert masked_values(given) == {"a": [MASK, {MASK: 1}], "n": MASK, "d": MASK, "b": True, "f": 1.5, "x": None}


def test_a_refusal_names_the_field_and_not_the_number() -> None:
    with pytest.raises(Malformed) as refused:
        refuse_card_number(f"order {VISA}", "merchant_order_id")
    assert refused.value.fields == ("merchant_order_id",)
    assert "4242" not in refused.value.message
    refuse_card_number("order-17", "merchant_order_id")


def test_numbers_are_found_among_random_ones_just_as_luhn_says() -> None:
    chance = random.Random(3)
    for _ in range(2000):
        number = "4" + "".join(chance.choice("0123456789") for _ in range(15))
        assert holds_card_number(f"n={number}") == luhn.is_valid(number)
