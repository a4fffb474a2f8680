"""Real SMTP servers on free ports: ones that take mail, and ones that behave as badly
as servers do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


@dataclass
class PostOffice:
    """Takes mail as `answers` say, the last one for ever; `connections` counts who came."""

    port: int = 0
    answers: list[str] = field(default_factory=lambda: ["250 OK"])
    recipient_answers: list[str] = field(default_factory=lambda: ["250 OK"])
    envelopes: list[Envelope] = field(default_factory=list)
    connections: int = 0
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    held: asyncio.Event | None = None

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    @property
    def mails(self) -> list[EmailMessage]:
        contents = [envelope.content for envelope in self.envelopes]
        return [message_from_bytes(content, policy=default) for content in contents if isinstance(content, bytes)]

    async def handle_RCPT(self, _server: Any, _session: Session, envelope: Envelope, address: str, options: Any) -> str:
        answer = _next(self.recipient_answers)
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, _server: Any, _session: Session, envelope: Envelope) -> str:
        if self.held is not None:
            await self.held.wait()
        answer = _next(self.answers)
        if answer.startswith("250"):
            self.envelopes.append(envelope)
        return answer

    def authenticate(self, _server: Any, _session: Any, _envelope: Any, _mechanism: Any, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login, data.password))
        if data.password == b"right":
            return AuthResult(success=True)
        return AuthResult(success=False, handled=False, message="535 5.7.8 not hunter2")


def _next(answers: list[str]) -> str:
    return answers.pop(0) if len(answers) > 1 else answers[0]


@asynccontextmanager
async def post_office(*, port: int = 0, **options: Any) -> AsyncIterator[PostOffice]:
    """A server for the length of a block; `options` are aiosmtpd's."""
    office = PostOffice()
    loop = asyncio.get_running_loop()

    def connect() -> SMTP:
        office.connections += 1
        return SMTP(office, hostname="mail.test", enable_SMTPUTF8=True, authenticator=office.authenticate, **options)

    server = await loop.create_server(connect, "127.0.0.1", port)
    office.port = server.sockets[0].getsockname()[1]
    try:
        yield office
    finally:
        server.close()
        if office.held is not None:
            office.held.set()


@asynccontextmanager
async def silent_server(greeting: bytes = b"", *, hang_up: bool = False) -> AsyncIterator[str]:
    """A server that says at most its greeting, then nothing for ever, or hangs up;
    gives its URL.
    """
    open_ones: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.add(writer)
        writer.write(greeting)
        if hang_up:
            writer.close()
            return
        with contextlib.suppress(ConnectionError):
            while await reader.read(1024):
                pass

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in open_ones:
            writer.close()
