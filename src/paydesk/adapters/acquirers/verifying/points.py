"""The points of the contract as an operator sees them: what was tried, expected and seen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from paydesk.adapters.acquirers.hosted_pages import Page
from paydesk.adapters.acquirers.interface import AcquirerRefused, Approved, Captured, Declined


class PointState(StrEnum):
    """How a point was kept."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the contract: what was tried, what it should come to, and what was seen."""

    tried: str
    expected: str
    seen: str
    state: PointState


class Differs(Exception):
    """Something else was seen."""


class Skipped(Exception):
    """It could not be tried."""


Try = Callable[[], Awaitable[str]]
Case = tuple[str, str, Try]


async def try_point(tried: str, expected: str, attempt: Try) -> Point:
    """What came of a try; what goes wrong is a point that was not kept."""
    try:
        return Point(tried, expected, await attempt(), PointState.OK)
    except Skipped as why:
        return Point(tried, expected, str(why), PointState.SKIPPED)
    except Exception as error:
        return Point(tried, expected, said(error), PointState.FAILED)


async def refusal_of(asked: Awaitable[object], error: type[AcquirerRefused]) -> str:
    """The words of a refusal that has to come."""
    try:
        answer = await asked
    except error as refused:
        return str(refused)
    raise Differs(named(answer))


def require(kept: bool, seen: str) -> None:
    """Go on only if a point is kept so far. Raises: Differs."""
    if not kept:
        raise Differs(seen)


def said(error: Exception) -> str:
    """What was seen, by the error that it was."""
    return str(error) if isinstance(error, Differs) else f"{type(error).__name__}: {error}"


def named(answer: object) -> str:
    """An answer in a word or two."""
    match answer:
        case Declined(reason):
            return f"declined: {reason}"
        case Approved(reference) | Captured(reference):
            return f"{type(answer).__name__.lower()} as {reference}"
        case Page(reference, state):
            return f"page {reference}, {state}"
    return type(answer).__name__


def paid_with(page: Page) -> str:
    """What a page was paid with, to be read after its payment; empty if that is not told."""
    paid = page.instrument
    return f" with {paid.brand or paid.kind} {paid.last4}".rstrip() if paid else ""
