"""Whoever opens connections to the metrics' port and says nothing keeps Prometheus from nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from prometheus_client import CollectorRegistry, Counter

from paydesk.commands.scraping import MOST, PER_ADDRESS, ScrapeServer

PATIENCE = 60.0
"""Seconds until what must come counts as not coming."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as closing:
        yield closing


@pytest.fixture
def server(stack: ExitStack) -> ScrapeServer:
    registry = CollectorRegistry()
    Counter("taken", "Of this test", registry=registry).inc(7)
    serving = ScrapeServer("127.0.0.1", 0, registry)
    serving.start()
    stack.callback(serving.server_close)
    stack.callback(serving.shutdown)
    return serving


def connection(server: ScrapeServer, stack: ExitStack, address: str) -> socket.socket:
    """A client of a loopback address of its own."""
    made = socket.create_connection(("127.0.0.1", server.server_port), PATIENCE, source_address=(address, 0))
    return stack.enter_context(made)


def scraped(server: ScrapeServer, stack: ExitStack, address: str) -> str:
    asking = connection(server, stack, address)
    asking.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    answer = b""
    while part := asking.recv(65536):
        answer += part
    return answer.decode()


def test_metrics_are_served(server: ScrapeServer, stack: ExitStack) -> None:
    assert "taken_total 7.0" in scraped(server, stack, "127.0.0.1")


def test_one_address_has_so_many_connections_and_others_have_theirs(server: ScrapeServer, stack: ExitStack) -> None:
    silent = [connection(server, stack, "127.0.0.2") for _ in range(PER_ADDRESS)]
    assert connection(server, stack, "127.0.0.2").recv(1) == b"", "one too many is closed"
    assert "taken_total 7.0" in scraped(server, stack, "127.0.0.3")
    silent[0].sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
    assert silent[0].recv(12).startswith(b"HTTP/1."), "those who were there still are"


def test_when_all_are_taken_the_oldest_ends(server: ScrapeServer, stack: ExitStack) -> None:
    silent = [connection(server, stack, f"127.0.0.{2 + number // PER_ADDRESS}") for number in range(MOST)]
    assert "taken_total 7.0" in scraped(server, stack, "127.0.0.200")
    assert silent[0].recv(1) == b""
    silent[-1].sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
    assert silent[-1].recv(12).startswith(b"HTTP/1.")


def test_who_never_finishes_the_question_is_ended(
    server: ScrapeServer, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScrapeServer, "seconds", 0.05)
    slow = connection(server, stack, "127.0.0.2")
    slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
    assert slow.recv(1) == b""
