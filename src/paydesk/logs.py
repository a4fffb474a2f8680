"""Structured logs on stderr, one line an event, with the request's id;
secrets and card numbers never enter them.
"""

from __future__ import annotations

import logging
import re
import sys

import structlog
from structlog.typing import EventDict, Processor

from paydesk.core.card_numbers import MASK, masked, masked_values
from paydesk.settings import Settings
from paydesk.told import InOneLine, instead_of_requests

_DRIVER = logging.getLogger("asyncpg.pool")
"""Where the driver's pool tells, with its place in the code, that it has no connection again yet:
whoever asks the database meanwhile is told, too.
"""

_CARD_NUMBER = re.compile(r"(?<![0-9A-Fa-f])[0-9](?:[ -]?[0-9]){12,18}(?![0-9A-Fa-f])")


def log_to_stderr() -> None:
    """Keep stdout for results, however a command is called;
    what runs long sets up more (`set_up_logs`).
    """
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
    _DRIVER.setLevel(logging.CRITICAL)


def set_up_logs(settings: Settings) -> None:
    """Send the logs of our own code and of the libraries through one formatter."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    shown = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else InOneLine(structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()))
    )
    last: list[Processor] = [structlog.processors.format_exc_info, hide_card_numbers, shown]
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    tells = not settings.log_requests and level <= logging.INFO
    structlog.configure(
        processors=[*([instead_of_requests] if tells else []), *shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if tells else level),
        # A line is one write, so that processes that share stderr don't mix their lines.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)
    _DRIVER.setLevel(logging.NOTSET)
    _DRIVER.addFilter(_without_place)


def _without_place(record: logging.LogRecord) -> bool:
    """Have a line of the driver's say why in it, instead of where in the code below it."""
    if record.exc_info and (error := record.exc_info[1]) is not None:
        record.msg, record.args, record.exc_info = "%s (%s: %s)", (record.msg, type(error).__name__, error), None
    return True


def hide_card_numbers(_logger: object, _method: str, event: EventDict) -> EventDict:
    """A last net: whatever a line holds, nothing that looks like a card number leaves in it."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = masked(_CARD_NUMBER.sub(MASK, value))
        elif isinstance(value, list | tuple | dict):
            event[name] = masked_values(value)
    return event
