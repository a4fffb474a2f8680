"""What a browser posts: fields as text, trimmed and bounded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from starlette.requests import Request

from paydesk.core.card_numbers import masked
from paydesk.core.errors import Malformed
from paydesk.core.paging import read_id
from paydesk.core.wording import worded
from paydesk.web.connections.limits import LARGEST_BODY
from paydesk.web.visits import read_body, read_form_body

LARGEST_FORM = 64 * 1024
LARGEST_UPLOAD = 512 * 1024
_MOST_FIELDS = 500
BOX = "1"
"""What a box says that is ticked."""
TOKEN_FIELD = "csrf"  # noqa: S105 (a name)
_FRAME = frozenset({TOKEN_FIELD, "username"})


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a posted form, or of an address after `?`; a name may stand several times."""

    pairs: tuple[tuple[str, str], ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    file_names: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str, most: int = 2000) -> str:
        """A field without surrounding spaces and card numbers, cut to `most` characters;
        empty if it is missing.
        """
        return masked(self.raw(name).strip())[:most]

    def raw(self, name: str) -> str:
        """A field as it was typed, for passwords and what rests sealed."""
        return next((value for key, value in self.pairs if key == name), "")

    def all(self, name: str) -> list[str]:
        """Every value of a field, for boxes that were ticked."""
        return [masked(value) for key, value in self.pairs if key == name]

    def has(self, name: str) -> bool:
        """Whether the field was sent, for one box."""
        return any(key == name for key, _ in self.pairs)

    def number(self, name: str) -> int | None:
        """A field as a whole number that an id may be, or None if it is none."""
        text = self.text(name, 20)
        return 0 if text == "0" else read_id(text)

    def one_of(self, name: str, *words: str, usual: str = "") -> str:
        """A field that says one of some words, or `usual` if it was not sent.

        Raises: Malformed, naming the field.
        """
        said = self.text(name, 40) if self.has(name) else usual
        if said not in words:
            raise no_choice(said, name)
        return said

    def require_only(self, *names: str, boxes: Iterable[str] = (), several: str = "") -> None:
        """Make sure that what moves money or sets terms was read whole: no other field, none twice.

        What our own frame adds (its token, the password's page) is let through; `boxes` say
        `1` where they are ticked, and nothing else; `several` is the name of boxes of which any
        number may be ticked.
        Raises: Malformed, naming the field.
        """
        known = {*names, *boxes}
        seen: set[str] = set()
        for name, _ in self.pairs:
            if name.startswith("_") or name in _FRAME:
                continue
            if name not in known:
                raise Malformed(
                    worded('there is no field "%(name)s" in this form; open its page again', name=name[:40]), name
                )
            if name in seen and name != several:
                raise Malformed(worded('the field "%(name)s" was sent twice; open the page again', name=name), name)
            seen.add(name)
        for name in boxes:
            self.one_of(name, BOX, usual=BOX)

    def but(self, *names: str) -> Iterator[tuple[str, str]]:
        """All fields without some, to be sent once more."""
        return ((key, value) for key, value in self.pairs if key not in names)


def no_choice(said: str, name: str) -> Malformed:
    """The refusal of what a page does not give to choose from."""
    return Malformed(
        worded('"%(said)s" is none of the choices; open the page again and choose one of them', said=said[:40]), name
    )


def parse_fields(text: str) -> Form:
    """Fields in the form encoding. Raises: Malformed if there are too many."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="replace")
    except ValueError:
        raise Malformed(f"the form has more than {_MOST_FIELDS} fields") from None
    return Form(tuple((name.replace("\x00", ""), value.replace("\x00", "")) for name, value in pairs))


async def read_posted(request: Request) -> Form:
    """The form that was posted. Raises: Malformed, TooLarge."""
    return parse_fields((await read_form_body(request, LARGEST_FORM)).decode("utf-8", "replace"))


_NAME = re.compile(rb'\bname="([^"]*)"')
_FILE_NAME = re.compile(rb'\bfilename="([^"]*)"')
_BOUNDARY = re.compile(r'boundary="?([A-Za-z0-9\'()+_,./:=?-]{1,70})"?')


async def read_upload(request: Request, largest: int = LARGEST_UPLOAD) -> Form:
    """A form with files (RFC 7578), of at most `largest` bytes.

    Raises: Malformed, TooLarge.
    """
    content_type = request.headers.get("content-type", "")
    boundary = _BOUNDARY.search(content_type)
    if not content_type.lower().startswith("multipart/form-data") or boundary is None:
        raise Malformed("the form must be sent as multipart/form-data")
    return parse_parts(await read_body(request, largest), boundary[1].encode())


async def read_evidence(request: Request) -> Form:
    """A form that may have a file of an answer to a dispute; of a page that was opened
    before there were files, plain fields. Raises: Malformed, TooLarge.
    """
    if request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return await read_upload(request, LARGEST_BODY)
    return await read_posted(request)


def parse_parts(body: bytes, boundary: bytes) -> Form:
    """The parts of a form between its boundaries: fields as text, files as they are.

    Raises: Malformed.
    """
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary)[1:]
    if len(parts) > _MOST_FIELDS:
        raise Malformed(f"the form has more than {_MOST_FIELDS} fields")
    if not parts or not parts[-1].startswith(b"--"):
        raise Malformed(worded("the form did not arrive whole; send it again"))
    pairs: list[tuple[str, str]] = []
    files: dict[str, bytes] = {}
    file_names: dict[str, str] = {}
    for part in parts:
        head, gap, content = part.partition(b"\r\n\r\n")
        name = _NAME.search(head)
        if not gap or name is None:
            continue
        text = name[1].decode("utf-8", "replace")
        if b"filename=" in head:
            files[text] = content
            named = _FILE_NAME.search(head)
            file_names[text] = named[1].decode("utf-8", "replace") if named else ""
        else:
            pairs.append((text, content.decode("utf-8", "replace").replace("\x00", "")))
    return Form(tuple(pairs), files, file_names)
