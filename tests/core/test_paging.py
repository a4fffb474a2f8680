"""An id is read as it is written, up to the largest that leaves the house."""

from __future__ import annotations

import pytest

from paydesk.core.paging import LARGEST_ID, read_id


@pytest.mark.parametrize("written", ["1", "18", "8999999999999998", str(LARGEST_ID)])
def test_an_id_is_read(written: str) -> None:
    assert read_id(written) == int(written)


@pytest.mark.parametrize(
    "written", ["", "0", "-1", "+1", " 1", "1.0", "1_0", "٣", "²", "0x1", str(LARGEST_ID + 1), "9" * 5000, "#1"]
)
def test_what_is_no_id_is_none(written: str) -> None:
    assert read_id(written) is None
