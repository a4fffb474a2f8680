"""A call to an acquirer without a trustworthy end goes no further, and is counted as unknown."""

from __future__ import annotations

import asyncio

import pytest

from paydesk.adapters.acquirers.interface import KeyUsed, OutcomeUnknown
from paydesk.domain.payments import metrics
from paydesk.domain.payments.unanswered import left_to_the_janitor


def unknown() -> float:
    """How many outcomes this process has counted as unknown."""
    return float(metrics.UNKNOWN._value.get())


def called(error: BaseException | None) -> str:
    with left_to_the_janitor(attempt_id=8):
        if error is not None:
            raise error
        return "answered"
    return "unknown"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OutcomeUnknown("no answer in time"), "outcome unknown"),
        (KeyUsed("used for something else"), "outcome unknown"),
        (ConnectionRefusedError(), "the database is away"),
        (ValueError("a fault of ours"), "the call to the acquirer failed"),
    ],
)
def test_what_goes_wrong_is_said_counted_and_goes_no_further(
    error: Exception, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = unknown()
    assert called(error) == "unknown"
    assert unknown() == before + 1
    logged = "".join(capsys.readouterr())
    assert said in logged
    assert "attempt_id=8" in logged


def test_an_answer_is_returned_and_not_counted() -> None:
    before = unknown()
    assert called(None) == "answered"
    assert unknown() == before


def test_who_is_stopped_stops() -> None:
    before = unknown()
    with pytest.raises(asyncio.CancelledError):
        called(asyncio.CancelledError())
    assert unknown() == before
