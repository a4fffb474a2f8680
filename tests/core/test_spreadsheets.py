from __future__ import annotations

import csv
import io
import unicodedata
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paydesk.core.spreadsheets import csv_line, harmless

SIGNS, SEPARATORS = "=+-@＝＋－＠﹢﹣﹦﹫−", ",;|\t\n\r；，"
HOSTILE = st.text(alphabet=f"{SIGNS}{SEPARATORS}\"' a1\u200b\ufeff\u00a0", max_size=12)


def begins_a_formula(cell: str) -> bool:
    """Whether a spreadsheet that forgives a lot takes a cell for a formula."""
    plain = unicodedata.normalize("NFKC", cell).lstrip('\ufeff\u200b" \t\r\n\u00a0')
    return plain[:1] in tuple("=+-@\u2212")


def test_every_cell_is_quoted_and_our_numbers_stay_numbers() -> None:
    when = datetime(2026, 11, 21, 3, 20, tzinfo=UTC)
    line = csv_line([1, "A-1", Decimal("-5.00"), -2, None, when, 'a "b"'])
    assert line == '"1","A-1","-5.00","-2","","2026-11-21T03:20:00+00:00","a ""b"""\r\n'


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+2", "'=1+2"),
        ("-5.00", "'-5.00"),
        ("＝1+2 Full Width", "'＝1+2 Full Width"),
        ("A;=1+2;B", "A;'=1+2;B"),
        ("A；＝1", "A；'＝1"),
        ('Eve;"=HYPERLINK("x")', 'Eve;"\'=HYPERLINK("x")'),
        ("Eve, \u200b@SUM", "Eve, \u200b'@SUM"),
        ("\t=1", "\t'=1"),
        ("a\r\n+1", "a\r\n'+1"),
        ("ada+shop@example.com", "ada+shop@example.com"),
        ("Jean-Luc, born 1+1=2", "Jean-Luc, born 1+1=2"),
        ("", ""),
    ],
)
def test_what_would_begin_a_formula_is_led_by_an_apostrophe(text: str, written: str) -> None:
    assert harmless(text) == written


@given(texts=st.lists(HOSTILE, min_size=1, max_size=4))
def test_no_program_finds_a_formula_whatever_it_separates_by(texts: list[str]) -> None:
    line = csv_line(texts)
    for delimiter in (",", ";", "\t", "|"):
        cells = [cell for row in csv.reader(io.StringIO(line, newline=""), delimiter=delimiter) for cell in row]
        assert [cell for cell in cells if begins_a_formula(cell)] == []


@given(texts=st.lists(HOSTILE, min_size=1, max_size=4))
def test_what_is_read_back_is_the_text_but_for_apostrophes(texts: list[str]) -> None:
    (read,) = csv.reader(io.StringIO(csv_line(texts), newline=""))
    assert [cell.replace("'", "") for cell in read] == [text.replace("'", "") for text in texts]
