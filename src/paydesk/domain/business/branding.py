"""How a merchant's checkout page looks: an accent colour and a logo."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from paydesk.core.errors import NotFound
from paydesk.core.pictures import Largest, require_picture
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require
from paydesk.domain.business.colours import parse_accent

queries = load_statements(__package__ or "", "branding.sql")

LARGEST_LOGO = 200 * 1024
LONGEST_SIDE = 4096
MOST_PIXELS = 4_000_000
"""A customer's phone unpacks these to 16 MB."""


@dataclass(frozen=True, slots=True)
class Branding:
    """An accent like `#1746a2`, or empty for ours; whether there is a logo, and another one for
    dark pages; `changed_at` is None before any choice.
    """

    accent: str = ""
    has_logo: bool = False
    has_dark_logo: bool = False
    changed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Logo:
    """A picture of at most 200 kB; its media type follows from its first bytes,
    not from what was said of it.
    """

    content: bytes = field(repr=False)
    media_type: str


@dataclass(frozen=True, slots=True)
class LogoChoice:
    """What is to become of a logo: another one, none, or the one that is there."""

    content: bytes = field(default=b"", repr=False)
    remove: bool = False

    def taken(self, name: str) -> Logo:
        """The new one, checked, without content if there is none; `name` is the field it came in.

        Raises: Malformed.
        """
        return parse_logo(self.content, name) if self.content else Logo(b"", "")

    @property
    def kept(self) -> bool:
        """Whether the one that is there stays."""
        return not self.content and not self.remove

    @property
    def told(self) -> str:
        """What came of it, for the audit log."""
        return "new" if self.content else "removed" if self.remove else "kept"


_AS_IT_IS = LogoChoice()


def parse_logo(content: bytes, name: str = "logo") -> Logo:
    """A PNG, JPEG or WebP picture that any phone can draw; `name` is the field that it came in.

    Raises: Malformed for anything else, and for one of absurd size.
    """
    picture = require_picture(content, Largest(LARGEST_LOGO, LONGEST_SIDE, MOST_PIXELS), name)
    return Logo(content, picture.media_type)


async def find_branding(database: Database, merchant_id: int) -> Branding:
    """What a merchant has chosen."""
    return record_if_any(Branding, await queries.find(database, merchant_id=merchant_id)) or Branding()


async def find_logo(database: Database, merchant_id: int, *, dark: bool = False) -> Logo:
    """A merchant's logo, that for dark pages if it has one. Raises: NotFound if there is none."""
    logo = record_if_any(Logo, await queries.find_logo(database, merchant_id=merchant_id, dark=dark))
    if logo is None:
        raise NotFound(f"merchant {merchant_id} has no logo")
    return logo


async def brand_account(database: Database, merchant_id: int, *, accent: str, logo: bytes, now: datetime) -> None:
    """Give an account that a command opens its colour and logo.

    Raises: Malformed, naming `accent` or `logo`.
    """
    await queries.save(
        database,
        merchant_id=merchant_id,
        accent=parse_accent(accent),
        logo=logo,
        logo_type=parse_logo(logo).media_type,
        keep_logo=False,
        dark_logo=None,
        dark_logo_type="",
        keep_dark_logo=True,
        now=now,
    )


async def save_branding(
    gate: Gate,
    session: Session,
    *,
    accent: str,
    logo: LogoChoice,
    dark_logo: LogoChoice = _AS_IT_IS,
    now: datetime,
) -> None:
    """Take a colour (empty: ours), a logo, and one for dark pages.

    Raises: Forbidden; Malformed, naming `accent`, `logo` or `dark_logo`.
    """
    merchant_id = require(session, Permission.manage_settings).merchant_id
    colour = parse_accent(accent) if accent else ""
    light, dark = logo.taken("logo"), dark_logo.taken("dark_logo")
    async with gate.database.acquire() as connection, connection.transaction():
        await queries.save(
            connection,
            merchant_id=merchant_id,
            accent=colour,
            logo=light.content or None,
            logo_type=light.media_type,
            keep_logo=logo.kept,
            dark_logo=dark.content or None,
            dark_logo_type=dark.media_type,
            keep_dark_logo=dark_logo.kept,
            now=now,
        )
        await record(
            connection,
            session.actor,
            Action.settings_changed,
            now=now,
            merchant_id=merchant_id,
            subject="branding",
            details={"accent": colour, "logo": logo.told, "logo on dark pages": dark_logo.told},
        )
