"""The mailbox page of `paydesk run`: the mails that a deployment with a mail server would
have sent.

Mails hold links that let their reader in, so only this machine may look: by a loopback address,
under a loopback name (a page of another site that points its own name here gets nothing), and not
through a proxy.
"""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from paydesk.adapters.mail import Kept, Letters
from paydesk.web.ids import id_in_path
from paydesk.web.rendering import DoorTemplates, secured
from paydesk.web.texts import Catalogues

PATH = "/mailbox"
_HERE = Path(__file__).parent
_PAGES = DoorTemplates(_HERE / "templates")
_ENGLISH = Catalogues(_HERE / "nowhere", "mailbox")
_NAMES = {"localhost", "127.0.0.1", "[::1]"}

_FRAMING = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; frame-src 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; form-action 'none'"
)
_FRAMED = (
    "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src 'unsafe-inline'; "
    "img-src 'self'; base-uri 'none'; frame-ancestors 'self'; form-action 'none'"
)


def mailbox_routes(mailbox: Letters) -> list[Route]:
    """The pages of a mailbox: its mails newest first, one of them, and that one's HTML for a frame
    of its own.
    """

    async def show_list(request: Request) -> Response:
        return _page(request, mailbox, None)

    async def show_mail(request: Request) -> Response:
        kept = mailbox.find(request.path_params["number"])
        return _page(request, mailbox, kept) if kept else _nothing()

    async def show_html(request: Request) -> Response:
        kept = mailbox.find(request.path_params["number"])
        if kept is None or not _from_here(request):
            return _nothing()
        # A link leads out of the frame, as it would lead out of a mail program.
        html = kept.letter.html.replace("<head>", '<head><base target="_blank">', 1)
        return secured(html, headers={"Content-Security-Policy": _FRAMED})

    return [
        Route(PATH, show_list, methods=["GET"]),
        Route(f"{PATH}/{id_in_path('number')}", show_mail, methods=["GET"]),
        Route(f"{PATH}/{id_in_path('number')}/html", show_html, methods=["GET"]),
    ]


def _page(request: Request, mailbox: Letters, shown: Kept | None) -> Response:
    if not _from_here(request):
        return _nothing()
    html = _PAGES.render("mailbox.html", _ENGLISH.texts_for("en"), path=PATH, kept=mailbox.letters(), shown=shown)
    return secured(html, headers={"Content-Security-Policy": _FRAMING})


def _nothing() -> Response:
    return PlainTextResponse("Not Found", 404)


def _from_here(request: Request) -> bool:
    """Whether a browser on this machine asks, for this machine."""
    host = request.headers.get("host", "").lower()
    name = host if host.endswith("]") else host.rsplit(":", 1)[0]
    client = request.client.host if request.client else ""
    forwarded = any(header in request.headers for header in ("x-forwarded-for", "forwarded", "x-real-ip"))
    return name in _NAMES and _is_loopback(client) and not forwarded


def _is_loopback(address: str) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return (getattr(parsed, "ipv4_mapped", None) or parsed).is_loopback
