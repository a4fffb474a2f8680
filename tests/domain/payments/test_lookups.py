from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from paydesk.core.clock import utc_now
from paydesk.domain.payments.lookups import Lookup, next_look
from paydesk.domain.payments.states import AttemptState

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def lookup(number: int, state: AttemptState = AttemptState.PROCESSING, **changes: Any) -> Lookup:
    created = utc_now()
    known: dict[str, Any] = {
        "shop": None, "attempt_id": 1, "payment_id": 1, "state": state, "key": "k", "acquirer": "a",
        "not_after": created + timedelta(minutes=1), "created_at": created, "finished_at": created,
        "number": number, "alerted": False, "renewal": False, "clock": timedelta(0),
    }  # fmt: skip
    return Lookup(**(known | changes))


def test_questions_are_asked_after_5_s_1_min_5_min_1_h_and_then_hourly() -> None:
    later = utc_now() + timedelta(days=1)
    pauses = [(next_look(lookup(number), later) or later) - later for number in range(1, 6)]
    assert pauses == [timedelta(minutes=1), timedelta(minutes=5), *[timedelta(hours=1)] * 3]


def test_a_question_falls_on_the_moment_when_not_found_becomes_final() -> None:
    one = lookup(2)
    assert next_look(one, one.created_at) == one.not_after + timedelta(seconds=31)


def test_what_was_given_up_is_asked_for_every_few_minutes() -> None:
    one = lookup(9, AttemptState.FAILED)
    asked, now, questions = [], one.created_at, 0
    while (then := next_look(one, now)) is not None:
        asked.append(then - now)
        now, questions = then, questions + 1
    assert max(asked[:9]) <= timedelta(minutes=1)
    assert max(asked[: 24 * 12]) <= timedelta(minutes=5)
    assert max(asked) == timedelta(hours=1)
    assert questions < 450


def test_what_was_given_up_is_asked_for_a_week() -> None:
    one = lookup(9, AttemptState.FAILED)
    assert next_look(one, one.created_at + timedelta(days=6)) is not None
    assert next_look(one, one.created_at + timedelta(days=7, hours=1)) is None


def test_what_was_given_up_at_different_times_is_asked_for_together() -> None:
    ends = [NOON + timedelta(seconds=7 * n) for n in range(40)]
    nexts = {next_look(lookup(9, AttemptState.FAILED, finished_at=end), end + timedelta(minutes=20)) for end in ends}
    assert nexts == {NOON + timedelta(minutes=25)}


def test_no_look_falls_on_the_moment_of_the_one_before() -> None:
    one = lookup(9, AttemptState.ABANDONED, finished_at=NOON)
    assert next_look(one, NOON + timedelta(hours=1)) == NOON + timedelta(hours=1, minutes=5)


def test_a_second_charge_that_can_t_be_undone_yet_is_tried_again_every_few_minutes() -> None:
    later = utc_now() + timedelta(hours=3)
    pauses = [(next_look(lookup(number, AttemptState.VOIDING), later) or later) - later for number in range(1, 6)]
    assert pauses == [timedelta(minutes=1), *[timedelta(minutes=5)] * 4]


def test_what_an_acquirer_will_not_undo_is_asked_for_for_a_day_and_then_daily() -> None:
    now, since, asked = NOON, NOON, []
    for number in range(1, 30):
        then = next_look(lookup(number, AttemptState.VOIDING), now, is_refused=True)
        assert then is not None
        asked.append(then - now)
        now = then
    assert max(asked[:23]) == timedelta(hours=1)
    assert set(asked[23:]) == {timedelta(days=1)}
    assert now - since < timedelta(days=8)
