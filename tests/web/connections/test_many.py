"""Many connections: each client has its share, and who asks goes before who is idle."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from unittest.mock import Mock

import pytest
from tests.processes import eventually
from tests.web.connections.conftest import GET, PATIENT, Serve, connected, refused, said, status

from paydesk.commands.starting import connection_limits
from paydesk.settings import load_settings
from paydesk.web.connections.limits import ConnectionLimits
from paydesk.web.connections.open import OpenConnections, Phase


async def test_no_more_connections_than_one_address_may_have(serve: Serve) -> None:
    service = serve(per_address=2)
    before = refused("address_full")
    async with connected(service, GET % b"hold"), connected(service):
        await eventually(lambda: len(service.connections._phase_of) == 2, "connected")
        answer = await service.ask(GET % b"third")
        assert (status(answer), b"retry-after: 5" in answer, b"from your address" in answer) == (429, True, True)
        assert refused("address_full") == before + 1
    service.let_go.set()
    await eventually(lambda: not service.connections._phase_of, "let go")
    assert await service.serves()


async def test_a_proxy_brings_as_many_connections_as_there_may_be(serve: Serve) -> None:
    service = serve(per_address=1, unlimited=(ip_network("127.0.0.0/8"),))
    async with connected(service, GET % b"hold"), connected(service, GET % b"hold"):
        await eventually(lambda: len(service.seen) == 2, "asked")
        assert await service.serves()
        service.let_go.set()


@pytest.mark.parametrize("is_proxy", [True, False])
async def test_a_proxys_connection_waits_for_another_request_longer_than_a_clients(
    serve: Serve, *, is_proxy: bool
) -> None:
    service = serve(idle_seconds=0, unlimited=(ip_network("127.0.0.0/8"),) if is_proxy else ())
    async with connected(service, GET % b"one") as (reader, writer):
        await reader.readuntil(b"0\r\n\r\n")
        if is_proxy:
            writer.write(GET % b"two")
            assert b"/two" in await reader.readuntil(b"0\r\n\r\n")
        else:
            assert await said(reader) == b""


async def test_idle_connections_make_room_for_whoever_asks(serve: Serve) -> None:
    service = serve(in_all=3)
    before = refused("displaced")
    async with connected(service, GET % b"hold") as (held, _), connected(service, GET % b"one") as (idle, _):
        await idle.readuntil(b"0\r\n\r\n")
        async with connected(service, b"GET /half") as (half, _):
            await eventually(lambda: len(service.connections._phases[Phase.HEAD]) == 1, "half a head")
            for gone in (idle, half):
                async with connected(service):
                    assert await said(gone) == b""
            assert await service.serves()
        service.let_go.set()
        assert b"/hold" in await held.readuntil(b"0\r\n\r\n")
    assert refused("displaced") >= before + 2


async def test_nobody_is_ended_over_a_request(serve: Serve) -> None:
    service = serve(in_all=2)
    before = refused("all_full")
    async with connected(service, GET % b"hold") as (one, _), connected(service, GET % b"hold") as (two, _):
        await eventually(lambda: len(service.seen) == 2, "asked")
        answer = await service.ask(GET % b"third")
        assert (status(answer), b"nothing was done" in answer) == (503, True)
        service.let_go.set()
        for held in (one, two):
            assert b"/hold" in await held.readuntil(b"0\r\n\r\n")
    assert refused("all_full") == before + 1


async def test_each_phase_has_its_own_time() -> None:
    now = 0.0
    limits = ConnectionLimits(head_seconds=10, body_seconds=60, unread_seconds=30, in_all=9, per_address=9)
    connections = OpenConnections(limits, clock=lambda: now)
    lasting = {Phase.HEAD: 10.0, Phase.BODY: 60.0, Phase.UNREAD: 30.0, Phase.CLOSING: 30.0}
    fakes = {phase: Mock() for phase in lasting}
    for phase, fake in fakes.items():
        assert connections.admit(fake, "192.0.2.1") is None
        connections.move(fake, phase)
    for now in (9.9, 10.0, 29.9, 30.0, 59.9, 60.0):
        for fake in fakes.values():
            fake.reset_mock()
        connections.look()
        assert {phase for phase, fake in fakes.items() if fake.overdue.called} == {
            p for p, at in lasting.items() if at <= now
        }
    for fake in fakes.values():
        connections.forget(fake)
        connections.forget(fake)
    assert connections.admit(Mock(), "192.0.2.1") is None


@pytest.mark.parametrize(
    ("first", "second", "is_one_client"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("10.0.0.1", "10.0.0.1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", False),
        (None, None, False),
    ],
)
async def test_who_is_one_client(first: str | None, second: str | None, is_one_client: bool) -> None:
    connections = OpenConnections(replace(PATIENT, per_address=1, unlimited=(ip_network("10.0.0.0/8"),)))
    assert connections.admit(Mock(), first) is None
    assert (connections.admit(Mock(), second) is not None) == is_one_client


def test_connections_leave_files_for_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for files, most in ((1024, 1024 - 220), (300, 150), (10**6, 4000), (-1, 4000)):
        monkeypatch.setattr("resource.getrlimit", lambda _, files=files: (files, files))
        assert connection_limits(load_settings()).in_all == most
    trusted = load_settings(trusted_proxies="10.0.0.0/8")
    assert {str(one) for one in connection_limits(trusted).unlimited} == {"127.0.0.0/8", "::1/128", "10.0.0.0/8"}


@pytest.mark.parametrize("phase", Phase)
async def test_who_is_slow_makes_room_and_who_waits_for_an_answer_does_not(phase: Phase) -> None:
    now = 0.0
    connections = OpenConnections(replace(PATIENT, in_all=1), clock=lambda: now)
    first = Mock()
    connections.admit(first, "192.0.2.1")
    connections.move(first, phase)
    second, third = Mock(), Mock()
    at_once = phase in (Phase.REFUSED, Phase.IDLE, Phase.HEAD)
    assert (connections.admit(second, "192.0.2.2") is None, first.displace.called) == (at_once, at_once)
    connections.forget(second)
    now = 0.5
    connections.admit(third, "192.0.2.3")
    assert first.displace.called == (phase is not Phase.ANSWER)
