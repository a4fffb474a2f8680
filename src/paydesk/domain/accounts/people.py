"""People: who they are, how they are found, and what they may change about themselves."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Final
from zoneinfo import available_timezones

from paydesk.core.errors import Malformed
from paydesk.core.wording import plural, worded
from paydesk.database.records import record_if_any
from paydesk.database.statements import Connection, load_statements

queries = load_statements(__package__ or "")

LONGEST_NAME = 100
LONGEST_EMAIL = 254
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")

# What mail programs make a link of: a scheme, an address, a domain ("J.R. Smith" and "St. Gallen"
# are none).
_LINK = re.compile(r"://|@|[/\\]{2}|\bwww\.|[^\W_][\w-]*[.。](?=[^\W\d_]{2})", re.IGNORECASE)
_SIGNS = re.compile(r"[./\\@:。]+")
"""Without them nothing is a link."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who logs in; `second_factor` is whether one is set up,
    `codes_left` counts unused recovery codes.

    Until a language is chosen, it is what their browser asked for.
    """

    id: int
    email: str
    name: str
    email_confirmed_at: datetime | None
    second_factor: bool
    codes_left: int
    operator: bool
    language: str
    language_chosen: bool
    time_zone: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AccountHolder:
    """Whom an e-mail address leads to, and what lets them in;
    `password_hash` is empty while none was chosen.
    """

    id: int
    email: str
    name: str
    password_hash: str = field(repr=False)
    operator: bool
    second_factor: bool
    language: str
    language_chosen: bool
    email_confirmed_at: datetime | None


async def find_holder(connection: Connection, email: str) -> AccountHolder | None:
    """Who has an account with this address, however its letters are written."""
    return record_if_any(AccountHolder, await queries.find_to_log_in(connection, email=email))


def parse_name(text: str, field: str = "name") -> str:
    """A person's or shop's name with its spaces tidied;
    mails show it, so it can't hold a link or an address.

    Raises: Malformed.
    """
    name = " ".join(text.split())
    if not name or not name.isprintable() or len(name) > LONGEST_NAME:
        raise Malformed(
            plural(
                "%(field)s needs 1 to %(count)s printable character",
                "%(field)s needs 1 to %(count)s printable characters",
                field=field,
                count=LONGEST_NAME,
            ),
            field,
        )
    if _holds_link(name):
        raise Malformed(worded("%(field)s can't hold a link, a domain or an e-mail address", field=field), field)
    return name


def unlinked(name: str) -> str:
    """A name as mails write it: one that was stored before names could hold no link is taken apart
    into words.
    """
    return " ".join(_SIGNS.sub(" ", unicodedata.normalize("NFKC", name)).split()) if _holds_link(name) else name


def _holds_link(name: str) -> bool:
    return _LINK.search(unicodedata.normalize("NFKC", name)) is not None


def parse_language(text: str) -> str:
    """A language tag such as `de` or `zh-Hans`.

    Raises: Malformed.
    """
    if len(text) > 35 or not _LANGUAGE.fullmatch(text):
        raise Malformed(worded("language is not a tag like en or de"), "language")
    return text


NO_ZONES: Final = frozenset({"localtime"})
"""What is no zone of the IANA database, though a machine has it among them: whatever its own is."""

ZONE_OF: Final = {"CET": "Europe/Brussels", "MET": "Europe/Brussels", "EET": "Europe/Athens", "WET": "Europe/Lisbon"}
"""The zones that these are links to: to PostgreSQL each is an abbreviation first, without
summer time."""


@cache
def time_zones() -> frozenset[str]:
    """The names of the IANA database on this machine; looking through its files takes 50 ms,
    so it is done once.
    """
    return frozenset(available_timezones()) - NO_ZONES - ZONE_OF.keys()


def parse_time_zone(text: str) -> str:
    """A zone of the IANA database, under the name that says the same to PostgreSQL.

    Raises: Malformed.
    """
    name = ZONE_OF.get(text, text)
    if name not in time_zones():
        raise no_such_zone()
    return name


def no_such_zone() -> Malformed:
    """What is raised of a time zone that is none, here or to the database."""
    return Malformed(worded("time_zone is not a name like Europe/Berlin"), "time_zone")


def findable(email: str) -> str:
    """An e-mail address as typed, made fit to look for:
    whatever it is, it finds one account or none.
    """
    return unicodedata.normalize("NFC", storable(email).strip())[:LONGEST_EMAIL]


def storable(text: str) -> str:
    """A text without what PostgreSQL and UTF-8 can't hold: NUL, and halves of characters."""
    return text.replace("\x00", "").encode(errors="replace").decode()
