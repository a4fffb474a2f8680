"""A round of a sender of mails, at a time that a test chooses."""

from __future__ import annotations

from datetime import datetime

from paydesk.domain.mail.sending import MailSender


async def send_due(sender: MailSender, *, now: datetime) -> int:
    """Try every mail that is due by `now` (UTC) once; returns how many that were."""
    tried = 0
    while started := await sender.start_due(now):
        tried += started
        await sender.settle()
    await sender.finish()
    return tried
