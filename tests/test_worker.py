"""What the background work is wired from."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from paydesk.adapters.mail import SmtpMailer
from paydesk.core.errors import SetupError
from paydesk.settings import Settings, announced
from paydesk.worker import mailer_of

URL = SecretStr("smtp://user:hunter2@mail.example")


def with_mail(settings: Settings, url: SecretStr, mail_from: str = "Paydesk <pay@shop.example>") -> Settings:
    return settings.model_copy(update={"smtp_url": url, "mail_from": mail_from})


def test_without_a_mail_server_there_is_no_mailer(settings: Settings) -> None:
    assert mailer_of(settings) is None


def test_a_mail_server_and_a_sender_make_a_mailer(settings: Settings) -> None:
    assert isinstance(mailer_of(with_mail(settings, URL)), SmtpMailer)


@pytest.mark.parametrize(
    ("url", "mail_from", "name"),
    [
        (SecretStr("mail.example:hunter2"), "pay@shop.example", "PAYDESK_SMTP_URL"),
        (SecretStr("smtp://user:hunter2@mail.example:x"), "pay@shop.example", "PAYDESK_SMTP_URL"),
        (URL, "", "PAYDESK_MAIL_FROM"),
    ],
)
def test_a_wrong_setting_is_named_without_its_password(
    settings: Settings, url: SecretStr, mail_from: str, name: str
) -> None:
    with pytest.raises(SetupError, match=name) as wrong:
        mailer_of(with_mail(settings, url, mail_from))
    assert "hunter2" not in str(wrong.value)


def test_the_mail_servers_password_is_written_nowhere(settings: Settings) -> None:
    mailing = Settings(**{**settings.model_dump(), "smtp_url": URL})
    assert "hunter2" not in repr(mailing)
    with announced(mailing):
        said = (settings.data_dir / "running.env").read_text()
    assert "hunter2" not in said
    assert "SMTP_URL" not in said
