"""Mails to people: by SMTP, or into a mailbox within the process. All mails leave through here."""

from paydesk.adapters.mail.letters import Letter, MailDelayed, Mailer, MailRefused, sender_address
from paydesk.adapters.mail.mailbox import Kept, Mailbox
from paydesk.adapters.mail.smtp import SmtpMailer, SmtpServer, parse_smtp_url

__all__ = [
    "Kept",
    "Letter",
    "MailDelayed",
    "MailRefused",
    "Mailbox",
    "Mailer",
    "SmtpMailer",
    "SmtpServer",
    "parse_smtp_url",
    "sender_address",
]
