"""One connection to a merchant's server: one request at a time, each with one answer.

What is not asked for is no answer to anything: a byte that comes while no request is under way,
before one was wholly sent, or after an answer's end, ends the connection. Else the rest of one
answer would be taken for the next one, and a pingback be acknowledged that was never read.
"""

from __future__ import annotations

import asyncio
import select
import socket
import time
from typing import cast

import httptools

from paydesk.adapters.outbound.problems import Broke, CallFailed, EndedEarly, NotHttp, Unanswered

_MOST_BESIDE_BODY = 65536
"""Bytes of heads, chunk sizes and trailers of one answer, those of interim answers included."""

_TOO_EARLY = "it began before the request was sent"
_TOO_MUCH = "more came than the answer"


class Heard:
    """What has come of one answer: its `status`, the start of its `body`,
    and whether that is `complete`; `began` says that a byte came.
    """

    __slots__ = ("began", "body", "complete", "status")

    def __init__(self) -> None:
        self.status: int | None = None
        self.body = bytearray()
        self.complete = False
        self.began = False


class Connection(asyncio.Protocol):
    """A connection over a socket that was checked and connected; the parser calls `on_…`.

    Attributes: made is when (monotonic seconds).
    """

    def __init__(self, connected: socket.socket, max_answer: int, *, is_tls: bool) -> None:
        self.made = time.monotonic()
        self._socket = connected
        # What waits in the socket under TLS may be the protocol's own.
        self._may_have_unread = not is_tls
        self._max_answer = max_answer
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._wire: asyncio.Transport | None = None
        self._parser = self._new_parser()
        self._spoke_unasked = False
        self._done: asyncio.Future[None] | None = None
        self._until = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._unread = select.poll()
        self._unread.register(connected, select.POLLIN)
        self._begin(Heard())

    @property
    def is_quiet(self) -> bool:
        """Whether it is open and nothing has come that nobody has read yet."""
        return self._transport is not None and not self._transport.is_closing() and not self._unread.poll(0)

    @property
    def is_reusable(self) -> bool:
        """Whether another request may go over it: the answer ended where its head said,
        and the server goes on.
        """
        return self._heard.complete and self._keeps and self._transport is not None and not self._spoke_unasked

    async def exchange(self, request: bytes, heard: Heard, until: float) -> None:
        """Send a request and hear its answer into `heard`, no more of its body than was asked for;
        `until` is when that ends at the latest (monotonic seconds).

        Unless the connection can be used again it is closed.

        Raises: CallFailed, TimeoutError.
        """
        self._begin(heard)
        self._done = self._loop.create_future()
        self._end_at(until)
        try:
            self._send(request)
            await self._done
            if self._spoke_unasked:
                raise NotHttp(_TOO_MUCH)
        except BaseException:
            self.abort()
            raise
        finally:
            self._done = None
        if not self.is_reusable:
            self.close() if heard.complete else self.abort()

    def close(self) -> None:
        """End it properly."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open, without TLS."""
        self._transport = self._wire = cast(asyncio.Transport, transport)

    def secured(self, transport: asyncio.Transport, wire: asyncio.Transport) -> None:
        """It is open with TLS, over a `wire` that alone knows what of it has not been sent."""
        self._transport, self._wire = transport, wire

    def data_received(self, data: bytes) -> None:
        """Take what came for the answer, if one is due."""
        if self._done is None or self._done.done():
            self._spoke_unasked = True
            self.abort()
        elif self._wire is not None and self._wire.get_write_buffer_size():
            self._end(NotHttp(_TOO_EARLY))
        else:
            self._heard.began = True
            self._received += len(data)
            self._hear(data)

    def connection_lost(self, error: Exception | None) -> None:
        """It is gone, which ends an answer whose head named no other end."""
        self._transport = self._wire = None
        self._parser = None
        if self._alarm is not None:
            self._alarm.cancel()
        if self._heard.status is None:
            self._end(Broke() if error else Unanswered())
        elif self._is_delimited:
            self._end(EndedEarly())
        elif error:
            self._end(Broke())
        else:
            self._heard.complete = True
            self._end()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note whether the head says where the answer ends."""
        if self._heard.status is not None:
            return  # A trailer says nothing of that.
        if len(name) == _LENGTH_LETTERS and name.lower() == b"content-length":
            self._lengths += 1
        elif len(name) == _ENCODING_LETTERS and name.lower() == b"transfer-encoding":
            self._encodings += 1

    def on_headers_complete(self) -> None:
        """Note the status of an answer that is not an interim one."""
        assert self._parser is not None
        status = self._parser.get_status_code()
        if self._is_ended or _is_interim(status):
            self._lengths = self._encodings = 0
            return
        self._heard.status = status
        self._keeps = self._parser.should_keep_alive() and status != _SWITCHING
        self._is_delimited = bool(self._lengths or self._encodings)

    def on_body(self, part: bytes) -> None:
        """Keep a part of the body, up to what is asked for and a little more, which tells."""
        if not self._is_ended and len(self._heard.body) <= self._max_answer:
            self._heard.body += part

    def on_message_complete(self) -> None:
        """The answer ends here, unless it was an interim one; a trailer may say, too, that it was
        the last.
        """
        self._is_ended = self._heard.status is not None
        self._keeps = self._keeps and self._parser is not None and self._parser.should_keep_alive()

    def _new_parser(self) -> httptools.HttpResponseParser | None:
        """A parser that reads answers as leniently as browsers do where that misplaces no end."""
        parser = httptools.HttpResponseParser(self)
        parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        return parser

    def _begin(self, heard: Heard) -> None:
        """Nothing of this answer has come yet."""
        self._heard = heard
        self._received = 0
        self._lengths = self._encodings = 0
        self._keeps = self._is_delimited = self._is_ended = False

    def _send(self, request: bytes) -> None:
        """Write the request, unless the server spoke first. Raises: CallFailed."""
        if self._spoke_unasked or (self._may_have_unread and self._has_unread()):
            raise NotHttp(_TOO_EARLY)
        self._may_have_unread = False
        if self._transport is None or self._transport.is_closing():
            raise Unanswered
        self._transport.write(request)

    def _has_unread(self) -> bool:
        """Whether bytes came that the loop has not read yet."""
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    def _hear(self, data: bytes) -> None:
        """Read on; the last byte by itself, so that it shows whether the answer ends with it."""
        heard = self._heard
        problem = self._feed(data[:-1]) if len(data) > 1 else None
        is_over = self._is_ended
        if not is_over and problem is None:
            problem = self._feed(data[-1:])
        if len(heard.body) > self._max_answer:
            del heard.body[self._max_answer :]
            self._end()
        elif self._received - len(heard.body) > _MOST_BESIDE_BODY:
            self._end(NotHttp(f"more than {_MOST_BESIDE_BODY} bytes of it are not its body"))
        elif is_over:
            self._end(NotHttp(_TOO_MUCH))
        elif problem is not None:
            self._end(problem)
        elif self._is_ended:
            heard.complete = True
            self._end()

    def _feed(self, data: bytes) -> NotHttp | None:
        """Have it parsed; returns what is wrong with it."""
        assert self._parser is not None
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            # Beyond an end it makes of what follows what it likes.
            return None if self._is_ended else NotHttp(str(error))
        if self._lengths > 1 or (self._lengths and self._encodings):
            return NotHttp("it says twice how long it is")
        return None

    def _end_at(self, until: float) -> None:
        """Have the exchange end at a time; one timer rings for many, and looks for which."""
        if self._alarm is not None and until < self._until:
            self._alarm.cancel()
            self._alarm = None
        self._until = until
        if self._alarm is None:
            self._alarm = self._loop.call_later(until - time.monotonic(), self._ring)

    def _ring(self) -> None:
        """End what has taken its time; what has begun since is looked at again in its own."""
        self._alarm = None
        if self._done is None or self._done.done():
            return
        if time.monotonic() < self._until:
            self._end_at(self._until)
        else:
            self._end(TimeoutError())

    def _end(self, problem: CallFailed | TimeoutError | None = None) -> None:
        """Let go of whoever waits for the answer."""
        if self._done is None or self._done.done():
            return
        if problem is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(problem)


_LENGTH_LETTERS, _ENCODING_LETTERS = len("content-length"), len("transfer-encoding")
_SWITCHING = 101


def _is_interim(status: int) -> bool:
    """Whether another answer follows (RFC 9110, 15.2); we never ask to switch protocols."""
    return 100 <= status < 200 and status != _SWITCHING
