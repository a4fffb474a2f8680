"""How far a test goes: `make test` plays the short form of what has no end of its own,
`make test-long` the whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

WHOLE = bool(os.environ.get("WHOLE_TESTS"))

longer = pytest.mark.longer
"""Marks what `make test-long` repeats at greater length."""
long = pytest.mark.long
"""Marks what `make test-long` alone runs."""


def at_length(whole: T, short: T) -> T:
    """How much of something there is: the whole, or its short form."""
    return whole if WHOLE else short


def one_of(every: int, examples: Iterable[Any]) -> list[Any]:
    """Examples for `parametrize`: the first of every few, and the others for `make test-long`."""
    return [one if place % every == 0 else _later(one) for place, one in enumerate(examples)]


def _later(example: Any) -> Any:
    return pytest.param(*(example if isinstance(example, tuple) else (example,)), marks=long)
