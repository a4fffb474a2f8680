from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

from starlette.responses import StreamingResponse

from paydesk.web.console.visit import Visit

WHEN = datetime(2026, 11, 21, 3, 20, tzinfo=UTC)


async def rows() -> AsyncIterator[list[object]]:
    yield [1, '=HYPERLINK("x")', Decimal("-5.00"), None, WHEN]
    yield [-2, "+49", "a,b\nc", "@x", "\t=1"]


async def test_a_csv_file_runs_nothing_in_a_spreadsheet() -> None:
    visit: Any = SimpleNamespace()
    answer = Visit.csv(visit, "payments.csv", ["id", "reference"], rows())
    assert isinstance(answer, StreamingResponse)
    text = "".join([str(part) async for part in answer.body_iterator])
    assert text == (
        '"id","reference"\r\n"1","\'=HYPERLINK(""x"")","-5.00","","2026-11-21T03:20:00+00:00"\r\n'
        '"-2","\'+49","a,b\nc","\'@x","\t\'=1"\r\n'
    )
    assert answer.headers["content-disposition"] == 'attachment; filename="payments.csv"'
    assert answer.headers["cache-control"] == "no-store"
