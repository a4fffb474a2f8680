"""The paths of the links that mails carry; the account's door serves them."""

from __future__ import annotations

from enum import StrEnum


class AccountLink(StrEnum):
    """A page to which a one-time token leads; each is a pattern with one `{token}`."""

    password = "/account/password/{token}"  # noqa: S105 (a path)
    """Choose a password: after a reset, and an operator's first one."""
    email = "/account/email/{token}"
    """Confirm an e-mail address."""
    invitation = "/account/invitation/{token}"
    """Join a merchant's team."""

    def at(self, address: str, token: str) -> str:
        """The whole link, at the service's public address."""
        return address.rstrip("/") + self.format(token=token)
