from __future__ import annotations

import re
from collections.abc import Callable

import httpx
import pytest
from starlette.applications import Starlette
from tests.web.mails.every_mail import ADDRESSES, mail_of

from paydesk.adapters.mail import Mailbox
from paydesk.domain.mail.kinds import MailKind
from paydesk.web.mails.mailbox import mailbox_routes
from paydesk.web.mails.writing import write

OpenAs = Callable[..., httpx.AsyncClient]


@pytest.fixture
async def mailbox() -> Mailbox:
    """A mailbox with a receipt (1) and, newer, a mail in Arabic if there is one (2)."""
    box = Mailbox()
    await box.send(write(mail_of(MailKind.receipt), ADDRESSES))
    await box.send(write(mail_of(MailKind.invitation, "ar", id=100), ADDRESSES))
    return box


@pytest.fixture
def open_as(mailbox: Mailbox) -> OpenAs:
    def start(client: str = "127.0.0.1", host: str = "127.0.0.1:8000") -> httpx.AsyncClient:
        transport = httpx.ASGITransport(Starlette(routes=mailbox_routes(mailbox)), client=(client, 5000))
        return httpx.AsyncClient(transport=transport, base_url=f"http://{host}")

    return start


async def test_mails_are_listed_newest_first(open_as: OpenAs) -> None:
    page = await open_as().get("/mailbox")
    assert page.status_code == 200
    assert re.findall(r"/mailbox/(\d+)", page.text) == ["2", "1"]


async def test_a_mail_shows_its_text_and_frames_its_html(open_as: OpenAs) -> None:
    page = await open_as().get("/mailbox/1")
    assert "Thank you. Zyx has received your payment" in page.text
    assert 'src="/mailbox/1/html" sandbox="allow-popups allow-popups-to-escape-sandbox"' in page.text
    assert "frame-src 'self'" in page.headers["content-security-policy"]
    assert "script-src" not in page.headers["content-security-policy"]


async def test_the_html_form_can_run_nothing_and_load_nothing(open_as: OpenAs) -> None:
    framed = await open_as().get("/mailbox/1/html")
    policy = framed.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-popups ")
    assert "allow-scripts" not in policy
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy
    assert "img-src 'self'" in policy
    assert '<base target="_blank">' in framed.text


async def test_an_empty_mailbox_says_how_to_get_a_mail() -> None:
    app = Starlette(routes=mailbox_routes(Mailbox()))
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 5000))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as browser:
        assert "No mail yet" in (await browser.get("/mailbox")).text


@pytest.mark.parametrize("path", ["/mailbox/3", "/mailbox/3/html", "/mailbox/0"])
async def test_a_mail_that_is_not_there_is_not_found(open_as: OpenAs, path: str) -> None:
    assert (await open_as().get(path)).status_code == 404


@pytest.mark.parametrize("path", ["/mailbox", "/mailbox/1", "/mailbox/1/html"])
@pytest.mark.parametrize(
    ("client", "host", "headers"),
    [
        ("192.0.2.7", "127.0.0.1:8000", {}),
        ("127.0.0.1", "evil.example", {}),
        ("127.0.0.1", "127.0.0.1.evil.example:8000", {}),
        ("127.0.0.1", "localhost:8000", {"X-Forwarded-For": "192.0.2.7"}),
        ("127.0.0.1", "localhost:8000", {"Forwarded": "for=192.0.2.7"}),
    ],
)
async def test_only_this_machine_may_look(
    open_as: OpenAs, path: str, client: str, host: str, headers: dict[str, str]
) -> None:
    assert (await open_as(client, host).get(path, headers=headers)).status_code == 404


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1", "[::1]", "[::1]:8000"])
async def test_this_machine_may_look_by_each_of_its_names(open_as: OpenAs, host: str) -> None:
    assert (await open_as("::1", host).get("/mailbox")).status_code == 200


async def test_a_second_copy_of_a_mail_is_folded_away(mailbox: Mailbox) -> None:
    await mailbox.send(write(mail_of(MailKind.receipt), ADDRESSES))
    assert len(mailbox.letters()) == 2


async def test_an_old_mail_makes_room_for_a_new_one() -> None:
    box = Mailbox()
    for number in range(250):
        await box.send(write(mail_of(MailKind.receipt, id=number), ADDRESSES))
    assert [box.letters()[0].number, box.letters()[-1].number] == [250, 51]
    assert box.find(50) is None
