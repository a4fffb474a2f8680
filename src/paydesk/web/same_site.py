"""Whether a form came from one of our own pages, as the browser says."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from starlette.requests import Request

from paydesk.core.errors import Forbidden
from paydesk.core.wording import worded


def split_sent(url: str) -> SplitResult:
    """An address in a header, such as `Origin`, in its parts; all empty if it is none:
    anybody may send anything.
    """
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


def require_own_page(request: Request, address: str) -> None:
    """Refuse what a browser says to come from another site.

    Raises: Forbidden.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    own = {split_sent(address).netloc.lower(), request.headers.get("host", "").lower()} - {""}
    foreign = origin is not None and split_sent(origin).netloc.lower() not in own
    if foreign or site not in (None, "same-origin", "none"):
        raise Forbidden(worded("this form was sent by another site; open the page here and send it again"))
