"""Every kind of mail goes the whole way: queued, written in the reader's language,
handed to a real SMTP server.
"""

from __future__ import annotations

from functools import partial

from tests import set_back
from tests.adapters.mail.post_offices import PostOffice
from tests.domain.mail.conftest import queue, sender_of
from tests.domain.mail.rounds import send_due
from tests.till import Till
from tests.web.mails.every_mail import ADDRESSES, FACTS

from paydesk.core.clock import utc_now
from paydesk.domain.mail.kinds import MailKind
from paydesk.web.mails.writing import write

HOSTILE = "Zyx\r\nBcc: victim@people.example\r\n\r\n<script>alert(1)</script>"
WORDS = ("name", "merchant_order_id", "package", "reason", "description", "carrier", "invited_by")


async def test_every_kind_arrives_as_text_and_html_in_the_readers_language(mails: Till, office: PostOffice) -> None:
    for kind in MailKind:
        await queue(mails, kind=kind, to=f"{kind}@people.example", facts=FACTS[kind])
    assert await send_due(
        sender_of(mails, office.url, write=partial(write, addresses=ADDRESSES)), now=utc_now()
    ) == len(MailKind)
    assert {str(mail["To"]) for mail in office.mails} == {f"{kind}@people.example" for kind in MailKind}
    assert len(office.mails) == len(MailKind)
    for mail in office.mails:
        text, html = (mail.get_body((form,)) for form in ("plain", "html"))
        assert text is not None
        assert html is not None
        assert text.get_content().startswith("Guten Tag")
        assert '<html lang="de" dir="ltr">' in html.get_content()
        assert mail["Content-Language"] == "de"


async def test_what_a_shop_or_a_customer_writes_reaches_nobody_else_and_runs_nowhere(
    mails: Till, office: PostOffice
) -> None:
    await set_back.called(mails.database, mails.shop.merchant_id, HOSTILE)
    for kind in MailKind:
        given = {name: HOSTILE if name in WORDS else value for name, value in FACTS[kind].items()}
        await queue(mails, kind=kind, to=f"{kind}@people.example", facts=given)
    await send_due(sender_of(mails, office.url, write=partial(write, addresses=ADDRESSES)), now=utc_now())
    assert len(office.mails) == len(MailKind)
    for mail in office.mails:
        html = mail.get_body(("html",))
        assert mail["Bcc"] is None
        assert html is not None
        assert "<script" not in html.get_content()
    assert {str(mail["To"]) for mail in office.mails} == {f"{kind}@people.example" for kind in MailKind}
