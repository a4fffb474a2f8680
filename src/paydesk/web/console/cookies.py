"""The account's cookies: the session, the forms of who is not logged in,
what to say on the next page, the theme.

Over https their names begin with `__Host-`, so that browsers take them only over https, for every
path, and from this host alone: no neighbouring subdomain can set one. Browsers refuse such names
over plain http, as on the loopback interface while somebody tries Paydesk; there the names have
no prefix.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from paydesk.adapters.vault import Vault
from paydesk.core.wording import plain
from paydesk.domain.accounts.sessions import LIFETIME

_SESSION, _FORM, _SAID, _THEME = "paydesk", "paydesk-form", "paydesk-said", "paydesk-theme"
_DEVICE = "paydesk-device"
_A_YEAR = 365 * 24 * 3600
_LONGEST_TOKEN = 100
THEMES = ("auto", "light", "dark")


@dataclass(frozen=True, slots=True)
class Said:
    """What happened, to be said on the next page; `tone` is success, info, warning or danger."""

    text: str
    tone: str = "success"


@dataclass(frozen=True, slots=True)
class Cookies:
    """Reads and writes the cookies of browsers that reach the service over https (`secure`),
    or not.
    """

    secure: bool
    vault: Vault

    def session_token(self, request: Request) -> str:
        """The token of the session, or an empty text."""
        return self._read(request, _SESSION)[:_LONGEST_TOKEN]

    def begin_session(self, response: Response, token: str) -> None:
        """Let the browser keep a session's token; it replaces any other."""
        self._write(response, _SESSION, token, max_age=int(LIFETIME.total_seconds()))

    def end_session(self, response: Response) -> None:
        """Let the browser forget the session's token."""
        self._write(response, _SESSION, "", max_age=0)

    def form_secret(self, request: Request) -> str:
        """What the forms of a browser without a session are bound to, or an empty text."""
        return self._read(request, _FORM)[:_LONGEST_TOKEN]

    def begin_forms(self, response: Response, secret: str) -> None:
        """Bind the forms of a browser without a session to a secret of its own."""
        self._write(response, _FORM, secret)

    def say(self, response: Response, said: Said) -> None:
        """Say something on the next page; nobody else can put words there."""
        packed = base64.urlsafe_b64encode(msgspec.json.encode(said, enc_hook=plain)).decode()
        self._write(response, _SAID, f"{packed}.{self._seal(packed)}", max_age=60)

    def said(self, request: Request) -> Said | None:
        """What the page before left to say."""
        packed, _, seal = self._read(request, _SAID).rpartition(".")
        if not packed or not hmac.compare_digest(self._seal(packed).encode(), seal.encode()):
            return None
        return msgspec.json.decode(base64.urlsafe_b64decode(packed), type=Said)

    def forget_said(self, response: Response) -> None:
        """It was said."""
        self._write(response, _SAID, "", max_age=0)

    def theme(self, request: Request) -> str:
        """The chosen theme, or `auto`."""
        chosen = self._read(request, _THEME)
        return chosen if chosen in THEMES else "auto"

    def choose_theme(self, response: Response, theme: str) -> None:
        """Keep a choice of THEMES."""
        self._write(response, _THEME, theme, max_age=_A_YEAR)

    def device(self, request: Request) -> str:
        """The token by which the browser is known again at its next log-in, or an empty text;
        it opens nothing.
        """
        return self._read(request, _DEVICE)[:_LONGEST_TOKEN]

    def keep_device(self, response: Response, device: str) -> None:
        """Let the browser be known again, for a year from each log-in."""
        self._write(response, _DEVICE, device, max_age=_A_YEAR)

    def _seal(self, packed: str) -> str:
        return self.vault.fingerprint(packed, purpose="account said").hex()

    def _name(self, name: str) -> str:
        return f"__Host-{name}" if self.secure else name

    def _read(self, request: Request, name: str) -> str:
        return request.cookies.get(self._name(name), "")

    def _write(self, response: Response, name: str, value: str, *, max_age: int | None = None) -> None:
        response.set_cookie(
            self._name(name), value, max_age=max_age, path="/", secure=self.secure, httponly=True, samesite="lax"
        )


def new_form_secret() -> str:
    """256 bits of chance for a browser without a session."""
    return secrets.token_urlsafe(32)


def new_device() -> str:
    """256 bits of chance for a browser that nobody has logged in with."""
    return secrets.token_urlsafe(32)
