"""Handing mails to an SMTP server: encrypted where there is a password,
with an end to every wait.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from aiosmtplib import SMTP
from aiosmtplib.errors import (
    SMTPDataError,
    SMTPException,
    SMTPNotSupported,
    SMTPRecipientsRefused,
    SMTPResponseException,
)

from paydesk.adapters.mail.letters import Letter, MailDelayed, MailRefused, compose, sender_address

ANSWER = 20.0
"""Seconds that the server has for one answer."""

WHOLE = 60.0
"""Seconds for all of one mail, however slowly the server trickles its answers."""

_PORTS = {"smtp": 587, "smtps": 465}
_LOG_IN_FIRST = 530
"""The server wants to know who we are: that is about this deployment, not about a recipient."""


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """Where and how mails are handed over; `starttls` None means if the server offers it."""

    host: str
    port: int
    tls: bool
    starttls: bool | None
    username: str | None
    password: str | None = field(repr=False)


def parse_smtp_url(url: str) -> SmtpServer:
    """Read `smtp://user:password@host:587?starttls=1` or `smtps://user:password@host`.

    A password is never sent unencrypted, unless `starttls=0` says so. Raises: ValueError, which
    shows no password.
    """
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise ValueError("the port is not a number between 1 and 65535") from None
    if parts.scheme not in _PORTS or not host or parts.path not in ("", "/"):
        raise ValueError("write it like smtp://user:password@mail.example:587?starttls=1 or smtps://…")
    options = parse_qs(parts.query, keep_blank_values=True)
    wanted = options.pop("starttls", [""])[-1]
    if options or wanted not in ("", "0", "1"):
        raise ValueError("the only option is starttls=1 or starttls=0")
    starttls = {"1": True, "0": False}.get(wanted)
    if parts.scheme == "smtps":
        starttls = False
    elif starttls is None and parts.username:
        starttls = True
    return SmtpServer(
        host,
        port or _PORTS[parts.scheme],
        parts.scheme == "smtps",
        starttls,
        unquote(parts.username) if parts.username else None,
        unquote(parts.password) if parts.password else None,
    )


async def addresses_of(server: SmtpServer) -> list[str]:
    """The addresses that a mail server has now; none if its name leads nowhere."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [str(address[0]) for *_, address in found]


class SmtpMailer:
    """Sends mails from one address; connections that worked are kept for the next mail."""

    def __init__(self, server: SmtpServer, *, mail_from: str, answer: float = ANSWER, whole: float = WHOLE) -> None:
        """Take the server and the sender; `answer` and `whole` are seconds. Raises: ValueError."""
        self._server = server
        self._mail_from = mail_from
        self._sender = sender_address(mail_from)[1]
        self._answer = answer
        self._whole = whole
        self._idle: list[SMTP] = []

    async def send(self, letter: Letter) -> None:
        """Hand one mail over. Raises: MailDelayed, MailRefused."""
        message = compose(letter, mail_from=self._mail_from)
        client: SMTP | None = None
        try:
            async with asyncio.timeout(self._whole):
                client = await self._connection()
                await client.send_message(message, sender=self._sender, recipients=[letter.recipient])
        except (SMTPException, OSError, TimeoutError) as error:
            if client is not None:
                client.close()
            raise self._judged(error) from None
        except BaseException:
            if client is not None:
                client.close()
            raise
        self._idle.append(client)

    async def rest(self) -> None:
        """Say goodbye on the connections that are not in use."""
        while self._idle:
            client = self._idle.pop()
            with suppress(SMTPException, OSError, TimeoutError):
                await client.quit(timeout=self._answer)
            client.close()

    async def _connection(self) -> SMTP:
        """A connection that still answers: one that was kept, or a new one."""
        while self._idle:
            client = self._idle.pop()
            try:
                await client.rset()
            except (SMTPException, OSError, TimeoutError):
                client.close()
            else:
                return client
        server = self._server
        client = SMTP(
            hostname=server.host,
            port=server.port,
            username=server.username,
            password=server.password,
            use_tls=server.tls,
            start_tls=server.starttls,
            timeout=self._answer,
        )
        try:
            await client.connect()
        except BaseException:
            client.close()
            raise
        return client

    def _judged(self, error: BaseException) -> MailDelayed | MailRefused:
        """Whether trying again makes sense. What is wrong with us or the server may be mended;
        an address may not.
        """
        if isinstance(error, SMTPNotSupported):
            return MailRefused(self._said(error))
        if isinstance(error, SMTPRecipientsRefused) and error.recipients:
            first = error.recipients[0]
            return MailRefused(self._said(first)) if _for_good(first) else MailDelayed(self._said(first))
        if isinstance(error, SMTPDataError) and _for_good(error):
            return MailRefused(self._said(error))
        return MailDelayed(self._said(error))

    def _said(self, error: BaseException) -> str:
        """What the server said, short and without the password, should it have been repeated."""
        code = f"{error.code} " if isinstance(error, SMTPResponseException) else ""
        said = str(getattr(error, "message", "") or error or type(error).__name__)
        if self._server.password:
            said = said.replace(self._server.password, "[password]")
        return f"{code}{' '.join(said.split())}"[:300]


def _for_good(error: SMTPResponseException) -> bool:
    return error.code >= 500 and error.code != _LOG_IN_FIRST
