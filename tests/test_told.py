import json
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from paydesk.logs import set_up_logs
from paydesk.settings import Settings

PINGBACK = {
    "about": "payment",
    "order": "A-1",
    "url": "http://127.0.0.1:9000/pingback",
    "status": 200,
    "why": "",
    "acknowledged": True,
    "ms": 8,
}


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def said(capsys: pytest.CaptureFixture[str], settings: Settings, **changed: Any) -> list[str]:
    """What stands on stderr of some events, by these settings."""
    set_up_logs(settings.model_copy(update=changed))
    log = structlog.get_logger()
    log.info("answered", route="/checkout/{token}", status=200)
    log.debug("a pingback was answered", **PINGBACK)
    log.debug("a pingback was answered", **{**PINGBACK, "acknowledged": False, "status": 500})
    log.debug("a test event was answered", **{**PINGBACK, "about": "refund", "order": "paydesk-test-event"})
    log.debug("a form was refused", status=403, why="hash is wrong\nsecond line 4242 4242 4242 4242")
    log.debug("something small")
    log.warning("mails wait")
    return capsys.readouterr().err.splitlines()


def test_results_and_refusals_are_a_line_each_instead_of_requests(
    capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    lines = said(capsys, settings, log_requests=False, log_format="console")
    assert [line[10:] for line in lines[:3]] == [
        "pingback      payment A-1 -> http://127.0.0.1:9000/pingback: ok (8 ms)",
        "pingback      payment A-1 -> http://127.0.0.1:9000/pingback: answered 500, but not ok (8 ms)",
        "test event    refund paydesk-test-event -> http://127.0.0.1:9000/pingback: ok (8 ms)",
    ]
    assert lines[3][10:].startswith("refused form  403: hash is wrong second line ")
    assert "4242 4242" not in lines[3]
    assert "mails wait" in lines[4]
    assert len(lines) == 5


def test_programs_read_the_same_as_json(capsys: pytest.CaptureFixture[str], settings: Settings) -> None:
    events = [json.loads(line) for line in said(capsys, settings, log_requests=False, log_format="json")]
    assert [event["event"] for event in events] == [
        "a pingback was answered",
        "a pingback was answered",
        "a test event was answered",
        "a form was refused",
        "mails wait",
    ]


def test_everywhere_else_requests_are_lines_and_results_none(
    capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    assert [json.loads(line)["event"] for line in said(capsys, settings, log_format="json")] == [
        "answered",
        "mails wait",
    ]


def test_who_asked_for_warnings_alone_is_told_nothing_else(
    capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    lines = said(capsys, settings, log_requests=False, log_level="warning", log_format="json")
    assert [json.loads(line)["event"] for line in lines] == ["mails wait"]
