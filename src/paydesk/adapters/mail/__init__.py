"""Mails to people: by SMTP, or into a mailbox on this machine. All mails leave through here."""

from paydesk.adapters.mail.letters import Letter, MailDelayed, Mailer, MailRefused, sender_address
from paydesk.adapters.mail.mailbox import FolderMailbox, Kept, Letters, Mailbox
from paydesk.adapters.mail.smtp import SmtpMailer, SmtpServer, addresses_of, parse_smtp_url

__all__ = [
    "FolderMailbox",
    "Kept",
    "Letter",
    "Letters",
    "MailDelayed",
    "MailRefused",
    "Mailbox",
    "Mailer",
    "SmtpMailer",
    "SmtpServer",
    "addresses_of",
    "parse_smtp_url",
    "sender_address",
]
