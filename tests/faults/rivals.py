"""Two customers who want the last of something, which one of them stops at a point with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.faults.customers import APPROVED, DECLINED, Plan
from tests.faults.plays import Deed, Play, pay, play
from tests.faults.stage import Order, Stage

BUG = "payments.begin_attempt"
"""Planted, an intent is committed once the bank has answered: the last one is free until then."""
_WAYS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("before payments.begin_attempt", (APPROVED,)),
    ("after payments.begin_attempt", (APPROVED,)),
    ("after bank.authorize", (APPROVED,)),
    ("before payments.record_approvals", (APPROVED,)),
    ("after payments.record_approvals", (APPROVED,)),
    ("after bank.authorize", (DECLINED, APPROVED)),
    ("after payments.record_declines", (DECLINED, APPROVED)),
)


def rival_of(order: Order) -> Order:
    """Somebody else who wants the same."""
    return replace(order, name=f"{order.name}-rival", plan=replace(order.plan, cards=(APPROVED,)))


def plays_for_the_last(planned: Callable[[Plan, str], Plan]) -> tuple[Play, ...]:
    """A customer for each point, whose rival pays when it is too late; `planned` says of each what
    they want, by a name of letters and digits.
    """
    return tuple(_play(at, cards, planned) for at, cards in _WAYS)


def _play(at: str, cards: tuple[str, ...], planned: Callable[[Plan, str], Plan]) -> Play:
    made = play(Deed("takes the last", pay, too=_rival_pays), at, plan=Plan(cards))
    name = "".join(letter for letter in made.order.name.upper() if letter.isalnum())[-30:]
    return replace(made, order=replace(made.order, plan=planned(made.order.plan, name)))


async def _rival_pays(stage: Stage, order: Order) -> None:
    await pay(stage, rival_of(order))
