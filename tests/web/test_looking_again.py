from __future__ import annotations

import pytest

from paydesk.web.looking_again import FIRST, LONGEST, look_again


def test_a_page_is_loaded_again_later_each_time_and_at_last_each_minute() -> None:
    query, waited = "", []
    for _ in range(30):
        seconds, _, query = look_again(query).partition("; url=?")
        waited.append(int(seconds))
    assert waited[:3] == [FIRST, 5, 6]
    assert waited == sorted(waited)
    assert waited[-1] == LONGEST


def test_what_the_address_says_otherwise_stays() -> None:
    assert look_again("waiting=a%22b&x") == "4; url=?waiting=a%22b&x=&looked=1"
    assert look_again("waits=&looked=1") == "5; url=?waits=&looked=2"


@pytest.mark.parametrize("looked", ["-1", "x", "²", "99999999999999999999", "1.5", ""])
def test_a_number_that_is_none_begins_anew(looked: str) -> None:
    assert look_again(f"looked={looked}") == "4; url=?looked=1"
