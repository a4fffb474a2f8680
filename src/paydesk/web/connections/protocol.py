"""HTTP/1.1 as uvicorn speaks it, for clients that nobody keeps at bay:
each part of a request has its time and size.
"""

from __future__ import annotations

from typing import Any, NoReturn

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from paydesk.web.connections import limits
from paydesk.web.connections.joined_writes import JoinedWrites
from paydesk.web.connections.limits import REFUSED, ConnectionRefusal
from paydesk.web.connections.open import OpenConnections, Phase


class _TooMuch(Exception):
    """Ends the parsing of a request that is refused."""


class LimitedProtocol(HttpToolsProtocol):
    """One connection, which ends when it exceeds a limit:
    with an answer that says why, wherever HTTP has room for it.

    What uvicorn does is left as it is; this looks at what comes in before it, and tells
    who counts the connections what is going on.
    """

    def __init__(self, connections: OpenConnections, **given: Any) -> None:
        super().__init__(**given)
        self._connections = connections
        self._answering: RequestResponseCycle | None = None
        self._problem: ConnectionRefusal | None = None
        self._in_head = self._in_body = self._is_marked = False
        self._head_bytes = self._body_bytes = self._content_bytes = 0
        # Nothing that comes in counts any more: refused, or the last request is being answered.
        self._is_deaf = False
        # The service ends: the next answer is the last one.
        self._is_ending = False
        self._to_discard = limits.MOST_DISCARDED

    # What the transport tells.

    def connection_made(self, transport: Any) -> None:
        """Count it, or refuse it."""
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]
        address = self.client[0] if self.client else None
        if self._connections.brings_others(address):
            self.timeout_keep_alive = max(self.timeout_keep_alive, limits.PROXY_IDLE_SECONDS)
        refusal = self._connections.admit(self, address)
        if refusal is not None:
            self._refuse(refusal)
        if refusal is limits.ALL_FULL:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no more."""
        self._connections.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, within the limits."""
        if self._is_deaf:
            self._discard(len(data))
            return
        self._unset_keepalive_if_required()
        self._count_bytes(len(data))
        self._feed(data)
        self._problem = self._problem or self._excess()
        if self._problem is not None:
            self._refuse(self._problem)
        self._settle()

    def pause_writing(self) -> None:
        """The client does not fetch its answer as fast as it is written."""
        super().pause_writing()
        self._settle()

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        self._settle()

    # What the parser finds.

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head = True
        self._is_marked = False
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of the address."""
        super().on_url(url)
        if len(self.url) > limits.LONGEST_ADDRESS:
            self._stop_at(limits.LONG_ADDRESS)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header field; those that trail a body would pass for ones that a proxy has looked at,
        and are left out.
        """
        if not self._in_head:
            return
        self._is_marked = self._is_marked or name.lower() == limits.MARK
        if len(self.headers) >= limits.MOST_HEADERS + (limits.MORE_MARKED_HEADERS if self._is_marked else 0):
            self._stop_at(limits.LARGE_HEAD)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is there: look at what it says of itself, then answer."""
        self._in_head = False
        self._head_bytes = self._body_bytes = self._content_bytes = 0
        self._check_head()
        super().on_headers_complete()
        if self._is_ending:
            self.cycle.keep_alive = False
        self._in_body = True

    def on_body(self, body: bytes) -> None:
        """A part of the body, without what frames it."""
        self._content_bytes += len(body)
        if self._content_bytes > limits.LARGEST_BODY:
            self._stop_at(limits.LARGE_BODY)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The body is there."""
        self._in_body = False
        super().on_message_complete()

    # What the answer does.

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """An answer is written."""
        answered = self._answering
        super().on_response_complete()
        if self._in_body and self.expect_100_continue and not self._body_bytes and answered is self.cycle:
            # Whoever was not told to send the body may send another request in its place.
            self._end()
        self._settle()

    def shutdown(self) -> None:
        """The service stops: an idle connection has a moment for what is on its way to it."""
        if self._is_deaf or self._is_ending or self._has_request:
            super().shutdown()
        else:
            self._is_ending = True
            self.loop.call_later(limits.ENDING_SECONDS, self._end_if_idle)
        self._settle()

    def _end_if_idle(self) -> None:
        """Nothing has come in the last moment; whatever has ends the connection with its answer."""
        if not self._has_request and not self.transport.is_closing():
            self.transport.close()
            self._settle()

    @property
    def _has_request(self) -> bool:
        """Whether a request has come that is not answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def timeout_keep_alive_handler(self) -> None:
        """Nothing has come since the last answer."""
        super().timeout_keep_alive_handler()
        self._settle()

    # What is told by who counts the connections.

    def overdue(self, phase: Phase) -> None:
        """It has been in a phase for too long."""
        if phase is Phase.HEAD and not self._head_bytes:
            self.transport.abort()
        elif phase is Phase.HEAD:
            self._refuse(limits.SLOW_HEAD)
        elif phase is Phase.BODY:
            self._refuse(limits.SLOW_BODY)
        elif phase is Phase.ANSWER:
            self._connections.move(self, Phase.CLOSING if self.transport.is_closing() else Phase.ANSWER)
        else:
            if phase is not Phase.REFUSED:
                REFUSED.labels(limits.SLOW_READER).inc()
            self.transport.abort()

    def displace(self) -> None:
        """End at once, for somebody else."""
        REFUSED.labels(limits.DISPLACED).inc()
        self.transport.abort()

    def _settle(self) -> None:
        """Tell who counts the connections what is going on now."""
        phase = self._phase()
        if phase is not self._connections.phase_of(self):
            self._connections.move(self, phase)

    def _phase(self) -> Phase:
        if self.transport.is_closing():
            return Phase.CLOSING
        if self.flow.write_paused:
            return Phase.UNREAD
        if self._is_deaf and not self._is_answering:
            return Phase.REFUSED
        if self._in_body and not self._is_deaf:
            return Phase.BODY
        if self._is_answering:
            return Phase.ANSWER
        return Phase.HEAD if self._in_head or self._head_bytes else Phase.IDLE

    @property
    def _is_answering(self) -> bool:
        answering = self._answering
        return answering is not None and not (answering.response_complete or answering.disconnected)

    def _count_bytes(self, number: int) -> None:
        """Count them for what is being read; what ends a body may begin a head,
        which counts from its next part.
        """
        if self._in_body:
            self._body_bytes += number
        else:
            self._head_bytes += number

    def _excess(self) -> ConnectionRefusal | None:
        """What is still coming in and is too large already, with all that frames it; what has ended
        came with the beginning of the next.
        """
        if self._in_body and self._body_bytes > limits.LARGEST_BODY:
            return limits.LARGE_BODY
        return limits.LARGE_HEAD if self._head_bytes > self._largest_head else None

    @property
    def _largest_head(self) -> int:
        return limits.LARGEST_HEAD + (limits.MORE_MARKED_BYTES if self._is_marked else 0)

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self._problem = self._problem or limits.MALFORMED
        except httptools.HttpParserUpgrade:
            # We speak nothing else: the request is answered as if it had not asked, and what
            # follows it is not HTTP.
            self._finish()

    def _check_head(self) -> None:
        size = len(self.url)
        for name, value in self.headers:
            size += len(name) + len(value) + 4
            if name == b"content-length" and int(value) > limits.LARGEST_BODY:
                self._stop_at(limits.LARGE_BODY)
        if size > self._largest_head:
            self._stop_at(limits.LARGE_HEAD)
        if len(self.pipeline) >= limits.MOST_PIPELINED:
            self._stop_at(limits.PIPELINED)

    def _stop_at(self, problem: ConnectionRefusal) -> NoReturn:
        self._problem = problem
        raise _TooMuch

    def _refuse(self, refusal: ConnectionRefusal) -> None:
        """Say why, after the answers to what came before, and end."""
        REFUSED.labels(refusal.why).inc()
        if self._in_body and self._answering is self.cycle:
            self._refuse_rest(refusal)
        elif self._is_answering:
            if self._in_body:
                self.pipeline.popleft()
            self._finish()
        else:
            self._say(refusal)

    def _refuse_rest(self, refusal: ConnectionRefusal) -> None:
        """Refuse the body of the request that is being answered, or has been without a look
        at its body.
        """
        cycle = self.cycle
        if cycle.response_complete:
            self._end()
        elif cycle.response_started:
            self.transport.abort()
        else:
            cycle.disconnected = True
            cycle.message_event.set()
            self._say(refusal)

    def _say(self, refusal: ConnectionRefusal) -> None:
        self.transport.write(refusal.answer(self.server_state.default_headers))
        self._end()

    def _finish(self) -> None:
        """Read no more, and end with the last answer."""
        self._is_deaf = True
        last = self.pipeline[0][0] if self.pipeline else self._answering
        if last is not None:
            last.keep_alive = False

    def _end(self) -> None:
        """Send what is written, and leave the client a moment to fetch it."""
        self._is_deaf = True
        self._unset_keepalive_if_required()
        if not self.transport.is_closing():
            self.flow.resume_reading()
            self.transport.write_eof()
        self._settle()

    def _discard(self, number: int) -> None:
        self._to_discard -= number
        if self._to_discard < 0 and not self.transport.is_closing():
            self.transport.pause_reading()
