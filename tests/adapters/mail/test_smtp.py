from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.adapters.mail.post_offices import post_office, silent_server

from paydesk.adapters.mail import Letter, MailDelayed, MailRefused, SmtpMailer, SmtpServer, parse_smtp_url

FROM = "Paydesk <pay@desk.example>"
LETTER = Letter(
    reference="paydesk-7-13330",
    sender_name="Köln & Söhne",
    reply_to="owner@shop.example",
    recipient="ada@people.example",
    subject="Ihre Quittung – 10,00 €",
    language="de",
    at=datetime(2026, 3, 1, 12, tzinfo=UTC),
    text="Hallo Ada,\n\nviele Grüße\n",
    html="<!doctype html><p>Hallo Ada, viele Grüße</p>",
)


def mailer(url: str, **options: float) -> SmtpMailer:
    return SmtpMailer(parse_smtp_url(url), mail_from=FROM, **options)


async def test_a_mail_arrives_with_both_forms_and_its_headers() -> None:
    async with post_office() as office:
        sender = mailer(office.url)
        await sender.send(LETTER)
        await sender.rest()
    (mail,) = office.mails
    assert (mail["From"], mail["To"]) == ("Köln & Söhne <pay@desk.example>", "ada@people.example")
    assert (mail["Subject"], mail["Reply-To"]) == ("Ihre Quittung – 10,00 €", "owner@shop.example")
    assert mail["Message-ID"] == "<paydesk-7-13330@desk.example>"
    assert (mail["Auto-Submitted"], mail["Content-Language"]) == ("auto-generated", "de")
    assert mail["Date"] == "Sun, 01 Mar 2026 12:00:00 +0000"
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert text.get_content().split() == LETTER.text.split()
    assert html is not None
    assert html.get_content().strip() == LETTER.html
    assert (office.envelopes[0].mail_from, office.envelopes[0].rcpt_tos) == ("pay@desk.example", ["ada@people.example"])


async def test_a_second_copy_is_the_same_to_the_byte() -> None:
    async with post_office() as office:
        sender = mailer(office.url)
        await sender.send(LETTER)
        await sender.send(LETTER)
        await sender.rest()
    first, second = (envelope.content for envelope in office.envelopes)
    assert first == second


async def test_one_connection_serves_one_mail_after_the_other() -> None:
    async with post_office() as office:
        sender = mailer(office.url)
        for number in range(5):
            await sender.send(replace(LETTER, reference=f"r{number}"))
        await sender.rest()
    assert (len(office.mails), office.connections) == (5, 1)


async def test_mails_at_once_have_connections_of_their_own() -> None:
    async with post_office() as office:
        sender = mailer(office.url)
        await asyncio.gather(*(sender.send(replace(LETTER, reference=f"r{number}")) for number in range(4)))
        await sender.rest()
    assert (len(office.mails), office.connections) == (4, 4)


async def test_a_connection_that_the_server_has_closed_is_made_anew() -> None:
    async with post_office() as office:
        sender = mailer(office.url)
        await sender.send(LETTER)
        port = office.port
        sender._idle[0].close()
        await sender.send(LETTER)
        await sender.rest()
    assert (len(office.mails), office.connections) == (2, 2)
    assert port


@pytest.mark.parametrize("answer", ["550 5.1.1 no such mailbox", "553 5.1.3 bad address"])
async def test_a_recipient_that_does_not_exist_is_refused_for_good(answer: str) -> None:
    async with post_office() as office:
        office.recipient_answers = [answer]
        with pytest.raises(MailRefused, match=answer[:3]):
            await mailer(office.url).send(LETTER)


@pytest.mark.parametrize(
    "answer", ["451 4.7.1 greylisted, come back later", "452 4.2.2 full", "530 5.7.0 log in first"]
)
async def test_a_server_that_wants_us_later_gets_the_mail_later(answer: str) -> None:
    async with post_office() as office:
        office.recipient_answers = [answer, "250 OK"]
        sender = mailer(office.url)
        with pytest.raises(MailDelayed, match=answer[:3]):
            await sender.send(LETTER)
        await sender.send(LETTER)
        await sender.rest()
    assert len(office.mails) == 1


async def test_a_content_that_is_refused_is_not_sent_again() -> None:
    async with post_office() as office:
        office.answers = ["554 5.7.1 looks like spam"]
        with pytest.raises(MailRefused, match="554"):
            await mailer(office.url).send(LETTER)


async def test_a_server_that_fails_after_the_data_gets_the_mail_later() -> None:
    async with post_office() as office:
        office.answers = ["451 4.3.0 disk full"]
        with pytest.raises(MailDelayed, match="451"):
            await mailer(office.url).send(LETTER)


async def test_a_server_that_never_greets_does_not_hold_us() -> None:
    async with silent_server() as url:
        with pytest.raises(MailDelayed):
            await mailer(url, answer=0.2).send(LETTER)


async def test_a_server_that_hangs_within_a_mail_does_not_hold_us() -> None:
    async with post_office() as office:
        office.held = asyncio.Event()
        with pytest.raises(MailDelayed):
            await mailer(office.url, answer=30, whole=0.3).send(LETTER)


async def test_a_server_that_hangs_up_is_tried_later() -> None:
    async with silent_server(b"220 mail.test\r\n", hang_up=True) as url:
        with pytest.raises(MailDelayed):
            await mailer(url).send(LETTER)


async def test_no_server_at_all_is_tried_later() -> None:
    async with silent_server() as url:
        pass
    with pytest.raises(MailDelayed):
        await mailer(url).send(LETTER)


async def test_a_password_is_not_sent_without_encryption() -> None:
    async with post_office(auth_require_tls=False) as office:
        url = office.url.replace("//", "//user:right@")
        with pytest.raises(MailDelayed, match="STARTTLS"):
            await mailer(url).send(LETTER)
        assert office.logins == []
        sender = mailer(f"{url}?starttls=0")
        await sender.send(LETTER)
        await sender.rest()
    assert office.logins == [(b"user", b"right")]


async def test_a_wrong_password_shows_in_no_error() -> None:
    async with post_office(auth_require_tls=False) as office:
        with pytest.raises(MailDelayed) as refused:
            await mailer(office.url.replace("//", "//user:hunter2@") + "?starttls=0").send(LETTER)
    assert "hunter2" not in str(refused.value)
    assert "535" in str(refused.value)


@pytest.mark.parametrize(
    "hostile",
    [
        "Shop\r\nBcc: victim@people.example",
        "Shop\nSubject: other",
        "Shop\x00\x0b\x0cName",
        "Shop\u2028Bcc: x@y.example",
        "=" * 5000,
    ],
)
async def test_no_name_adds_a_header(hostile: str) -> None:
    letter = replace(LETTER, sender_name=hostile, subject=hostile, reply_to=f"a@b.example{hostile}")
    async with post_office() as office:
        sender = mailer(office.url)
        await sender.send(letter)
        await sender.rest()
    (mail,) = office.mails
    assert (mail["Bcc"], mail["Reply-To"]) == (None, None)
    assert len(mail.get_all("Subject", [])) == 1
    assert office.envelopes[0].rcpt_tos == ["ada@people.example"]


@pytest.mark.parametrize(
    "address",
    [
        "",
        "nobody",
        "a@b.example\r\nRCPT TO:<c@d.example>",
        "a@b.example, c@d.example",
        "<a@b.example>",
        "a b@c.example",
    ],
)
async def test_what_is_no_address_is_refused_before_anybody_is_called(address: str) -> None:
    async with post_office() as office:
        with pytest.raises(MailRefused):
            await mailer(office.url).send(replace(LETTER, recipient=address))
        assert office.connections == 0


async def test_an_address_in_another_script_is_sent_to() -> None:
    async with post_office() as office:
        sender = mailer(office.url)
        await sender.send(replace(LETTER, recipient="用户@例え.example"))
        await sender.rest()
    assert office.envelopes[0].rcpt_tos == ["用户@例え.example"]


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://mail.example", SmtpServer("mail.example", 587, False, None, None, None)),
        ("smtp://mail.example:25?starttls=0", SmtpServer("mail.example", 25, False, False, None, None)),
        ("smtp://u%40x:p%2Fw@mail.example", SmtpServer("mail.example", 587, False, True, "u@x", "p/w")),
        ("smtp://u:p@mail.example?starttls=0", SmtpServer("mail.example", 587, False, False, "u", "p")),
        ("smtps://u:p@mail.example", SmtpServer("mail.example", 465, True, False, "u", "p")),
    ],
)
def test_the_setting_is_read(url: str, server: SmtpServer) -> None:
    assert parse_smtp_url(url) == server
    assert "password" not in repr(server)


@pytest.mark.parametrize(
    "url",
    [
        "mail.example",
        "http://mail.example",
        "smtp://",
        "smtp://u:secret@mail.example:99999",
        "smtp://m.example?tls=1",
        "smtp://m.example?starttls=yes",
    ],
)
def test_a_wrong_setting_is_explained_without_its_secret(url: str) -> None:
    with pytest.raises(ValueError, match=r"write it like|option|port") as wrong:
        parse_smtp_url(url)
    assert "secret" not in str(wrong.value)


@pytest.mark.parametrize("mail_from", ["", "Paydesk", "a@b@c"])
def test_mails_need_an_address_to_come_from(mail_from: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        SmtpMailer(parse_smtp_url("smtp://mail.example"), mail_from=mail_from)
