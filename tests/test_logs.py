from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from paydesk.logs import set_up_logs
from paydesk.settings import Settings


@pytest.fixture
def _logs_as_before() -> Iterator[None]:
    """No test finds logs set up by another one."""
    root, before = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**before)


@pytest.mark.usefixtures("_logs_as_before")
@pytest.mark.parametrize("form", ["json", "console"])
def test_a_database_that_is_still_away_is_one_line_without_a_place_in_the_code(
    settings: Settings, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    set_up_logs(settings.model_copy(update={"log_format": form}))
    try:
        raise ConnectionRefusedError("nobody listens")
    except ConnectionRefusedError:
        logging.getLogger("asyncpg.pool").warning("Failed to restore the pool connection floor", exc_info=True)
    (line,) = capsys.readouterr().err.splitlines()
    assert "Failed to restore the pool connection floor (ConnectionRefusedError: nobody listens)" in line
