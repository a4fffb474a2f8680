"""Where a pingback goes, and what may be named as that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

import msgspec

from paydesk.core.errors import Malformed
from paydesk.core.urls import WEB_SCHEMES, check_url
from paydesk.core.wording import plural, worded

LONGEST_URL = 2048
"""Characters."""


@dataclass(frozen=True, slots=True)
class Account:
    """What an account says about pingbacks: its URLs, and when it went live (None: it has not)."""

    account_url: str | None
    test_pingback_url: str | None
    went_live_at: datetime | None


def parse_pingback_url(url: str, called: str, field: str) -> str:
    """Check a URL for pingbacks, wherever it is named; empty stays empty.

    Args: called is what its giver knows it by, field what it is sent as.
    Raises: Malformed, naming the field.
    """
    if not url:
        return url
    if len(url) > LONGEST_URL:
        raise Malformed(
            plural(
                "%(field)s has %(count)s character, at most %(most)s are accepted",
                "%(field)s has %(count)s characters, at most %(most)s are accepted",
                field=called,
                count=len(url),
                most=LONGEST_URL,
            ),
            field,
        )
    try:
        scheme = check_url(url, called)
    except Malformed as error:
        raise Malformed(error.message, field) from None
    if scheme not in WEB_SCHEMES:
        raise Malformed(worded("%(field)s must be an absolute http or https URL", field=called), field)
    if "@" in urlsplit(url).netloc:
        raise Malformed(worded("%(field)s must not carry a user name or password", field=called), field)
    return url


def destination(form_url: str | None, account: Account, *, live: bool) -> str | None:
    """The URL for a pingback, or None if it has to wait for one: the form's, else the account's.

    A test pingback is as validly signed as a live one, and a customer can post a live form to the
    sandbox. So once the merchant is live, test pingbacks go to the account's test URL and nowhere
    else (interface.md §9.3).
    """
    if live:
        return form_url or account.account_url or None
    if account.went_live_at is not None:
        return account.test_pingback_url or None
    return form_url or account.test_pingback_url or account.account_url or None


class Addressed(msgspec.Struct, frozen=True):
    """What a row says of where a pingback goes and in which form;
    statements that are told of name these columns.
    """

    live: bool
    form_url: str | None
    account_url: str | None
    test_pingback_url: str | None
    went_live_at: datetime | None
    sign_version: str
    pingback_format: str

    @property
    def send_to(self) -> str | None:
        """The URL that it is sent to, None if it has to wait for one."""
        account = Account(self.account_url, self.test_pingback_url, self.went_live_at)
        return destination(self.form_url, account, live=self.live)

    @property
    def body_format(self) -> str:
        """The body that it gets."""
        return body_format(self.sign_version, self.pingback_format)


def body_format(sign_version: str, pingback_format: str) -> str:
    """The body that a pingback gets: version 2 is always JSON, version 1 as the account says
    (interface.md §4.4).
    """
    return "json" if sign_version == "v2" else pingback_format
