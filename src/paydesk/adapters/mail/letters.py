"""A mail as it is sent: the same bytes each time it is tried,
and no header that somebody's name could add.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from typing import Protocol

_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_ADDRESS = re.compile(r"[^\s@<>\"(),:;\\\[\]\x00-\x1f\x7f]+@[^\s@<>\"(),:;\\\[\]\x00-\x1f\x7f]+")
_LONGEST_LINE = 200
_LONGEST_ADDRESS = 320


class MailDelayed(Exception):
    """The mail could not be handed over now; a later try may succeed.
    The text says why, without secrets.
    """


class MailRefused(Exception):
    """The mail can't be delivered, whatever the number of tries:
    its address or its content was refused for good.
    """


class Mailer(Protocol):
    """Hands mails over; at most as many at once as the caller starts."""

    async def send(self, letter: Letter) -> None:
        """Hand one mail over. Raises: MailDelayed, MailRefused."""

    async def rest(self) -> None:
        """Close what was kept open for the next mail; sending opens it again."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail in one language: who it says it is from, who answers go to, and its two forms.

    `reference` names the mail for ever: a second copy carries the same Message-ID, so that mail
    programs fold it away. `at` (UTC) is when it was queued.
    """

    reference: str
    sender_name: str
    reply_to: str
    recipient: str
    subject: str
    language: str
    at: datetime
    text: str = field(repr=False)
    html: str = field(repr=False)

    @property
    def subject_line(self) -> str:
        """The subject on one line."""
        return one_line(self.subject)


def one_line(text: str) -> str:
    """A text for a header: control characters and line breaks become spaces,
    and it ends somewhere.
    """
    return _BLANK.sub(" ", text).strip()[:_LONGEST_LINE]


def sender_address(text: str) -> tuple[str, str]:
    """The name (may be empty) and the address of `Paydesk <pay@shop.example>`.

    Raises: ValueError.
    """
    name, address = parseaddr(text)
    if not _is_address(address) or not address.isascii():
        raise ValueError(f"{one_line(text)!r} is not an address like Paydesk <pay@shop.example>")
    return one_line(name), address


def compose(letter: Letter, *, mail_from: str) -> EmailMessage:
    """The message of a letter, from the deployment's one address.

    Raises: MailRefused if the recipient's address can't stand in a header.
    """
    name, address = sender_address(mail_from)
    message = EmailMessage(policy=SMTP)
    message["From"] = _header_address(one_line(letter.sender_name) or name, address)
    message["To"] = _header_address("", letter.recipient)
    if _is_address(letter.reply_to):
        message["Reply-To"] = _header_address("", letter.reply_to)
    message["Subject"] = letter.subject_line
    message["Date"] = format_datetime(letter.at)
    message["Message-ID"] = f"<{letter.reference}@{address.partition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(letter.text)
    message.add_alternative(letter.html, subtype="html")
    message["Content-Language"] = letter.language
    # The parts' separator would be drawn at random; a second copy is to be the same mail.
    message.set_boundary(f"=_{letter.reference}")
    return message


def _is_address(text: str) -> bool:
    return len(text) <= _LONGEST_ADDRESS and bool(_ADDRESS.fullmatch(text))


def _header_address(name: str, address: str) -> Address:
    if not _is_address(address):
        raise MailRefused("the address is not one that mail can be sent to")
    username, _, domain = address.rpartition("@")
    return Address(name, username, domain)
