"""Static files under names that carry a hash of their content, so that browsers may keep them
for ever.

Every door keeps its files in a folder `static/`; what several doors use stands in one beside them.
They are read and compressed once, at import; nothing is read from the disk while serving.
`static_app()` belongs under `/static`, and also below the sandbox base where that has a host of
its own.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import mimetypes
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

PREFIX = "/static"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Asset:
    """One static file: `url_name` is its name with the hash in it;
    `compressed` is the gzip form of `content`.
    """

    url_name: str
    media_type: str
    content: bytes = field(repr=False)
    compressed: bytes = field(repr=False)


class Assets:
    """The files of some folders, found by their plain names
    (for templates) or by their hashed names (for browsers).
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        """Read all files of the folders; two files of the same name are a mistake
        that stops the start.
        """
        self._by_name: dict[str, Asset] = {}
        files = [path for folder in folders for path in folder.iterdir() if path.is_file() and path.name[0] != "."]
        for path in sorted(files):
            if path.name in self._by_name:
                raise ValueError(f"two static files are named {path.name}; rename {path}")
            self._by_name[path.name] = _read(path)
        self._by_url_name = {asset.url_name: asset for asset in self._by_name.values()}

    def find(self, name: str) -> Asset:
        """A file by its plain name, such as `page.css`. Raises: KeyError if there is none."""
        return self._by_name[name]

    def url(self, name: str) -> str:
        """The address of a file by its plain name. Raises: KeyError if there is none."""
        return f"{PREFIX}/{self.find(name).url_name}"

    def integrity(self, name: str) -> str:
        """What a browser compares a file with before it uses it (subresource integrity).

        Raises: KeyError.
        """
        return "sha384-" + base64.b64encode(hashlib.sha384(self.find(name).content).digest()).decode()

    def app(self) -> ASGIApp:
        """An ASGI application that serves the files by their hashed names,
        and 404 for everything else.
        """
        return Router(routes=[Route("/{url_name}", self._serve, methods=["GET"])])

    async def _serve(self, request: Request) -> Response:
        asset = self._by_url_name.get(request.path_params["url_name"])
        if asset is None:
            return PlainTextResponse("Not Found", 404)
        headers = {
            "Cache-Control": "public, max-age=31536000, immutable",
            "Vary": "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
        }
        if not _accepts_gzip(request.headers.get("accept-encoding", "")):
            return Response(asset.content, media_type=asset.media_type, headers=headers)
        headers["Content-Encoding"] = "gzip"
        return Response(asset.compressed, media_type=asset.media_type, headers=headers)


def _read(path: Path) -> Asset:
    """Load one file and name it after its content."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:10]
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Asset(f"{path.stem}.{digest}{path.suffix}", media_type, content, gzip.compress(content, 9, mtime=0))


def _accepts_gzip(accept_encoding: str) -> bool:
    """Whether the header names gzip without refusing it by a quality of 0."""
    for offer in accept_encoding.lower().split(","):
        coding, _, quality = offer.partition(";")
        if coding.strip() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


_WEB = Path(__file__).parent
ASSETS = Assets([_WEB / "static", *sorted(_WEB.glob("*/static")), *sorted(_WEB.glob("*/static/vendor"))])
"""The static files that doors share, those of all doors,
and those of others that `hatch_build.py` brought."""


def asset_url(name: str) -> str:
    """The hashed address of a static file of any door. Raises: KeyError if there is none."""
    return ASSETS.url(name)


@cache
def asset_integrity(name: str) -> str:
    """The hash that a page gives with a static file of any door.

    Raises: KeyError if there is none.
    """
    return ASSETS.integrity(name)


def static_app() -> ASGIApp:
    """The application to mount at `/static`."""
    return ASSETS.app()
