from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paydesk.core.octal import octal_reading
from paydesk.core.paging import LARGEST_ID

NEW_IDS = st.integers(min_value=0, max_value=(LARGEST_ID - 8) // 10).map(lambda tens: tens * 10 + 8)


@given(NEW_IDS)
def test_a_new_id_in_octal_is_read_back(new_id: int) -> None:
    assert octal_reading(f"{new_id:o}") == new_id


@given(NEW_IDS, NEW_IDS)
def test_the_octal_text_of_a_new_id_is_no_other_new_id(one: int, other: int) -> None:
    assert f"{one:o}" != str(other)
    assert int(f"{one:o}") % 10 != 8


@given(NEW_IDS, st.data())
def test_nor_is_it_an_id_that_was_given_before(new_id: int, data: st.DataObject) -> None:
    given_before = data.draw(st.integers(min_value=1, max_value=max(new_id - 1, 1)))
    assert int(f"{new_id:o}") > new_id > given_before or new_id == 8


@given(NEW_IDS)
def test_the_decimal_text_of_a_new_id_is_never_read_as_octal(new_id: int) -> None:
    assert octal_reading(str(new_id)) is None


@pytest.mark.parametrize(
    "text", ["", "0", "010", "11", "32033", "9", "18", "-10", "+10", "1_0", " 10", "٣٢٠٣٢", "10.0", "7" * 40, "4" * 18]
)
def test_what_is_no_new_id_in_octal_is_none(text: str) -> None:
    assert octal_reading(text) is None
