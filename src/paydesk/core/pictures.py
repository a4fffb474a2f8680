"""Pictures that strangers' browsers will draw: what kind they are, and how large,
read from their headers alone.

A few kilobytes can unpack to gigabytes, so nothing here unpacks anything: the width and height that
each format states before its pixels are believed, as browsers believe them, and what states none is
no picture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paydesk.core.errors import Malformed
from paydesk.core.wording import worded

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The JPEG markers that begin a frame, with its size; the other three of the row are tables."""
_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
"""The JPEG markers that stand alone, without a length."""
_SCAN, _END = 0xDA, 0xD9

MOST_PASSES = 100
"""A progressive JPEG has about ten; a hostile one has thousands, each over all of its pixels."""


@dataclass(frozen=True, slots=True)
class Largest:
    """How large a picture may be: in bytes, along a side, and in pixels altogether."""

    content: int
    side: int
    pixels: int


@dataclass(frozen=True, slots=True)
class Picture:
    """What a file says that it is: its media type, its sides in pixels,
    and how many times over it is drawn.
    """

    media_type: str
    width: int
    height: int
    passes: int = 1


def require_picture(content: bytes, largest: Largest, field: str) -> Picture:
    """The header of a picture that any phone can draw.

    Raises: Malformed for anything but a PNG, JPEG or WebP file (an SVG is a program, so it is not
        taken), and for one of absurd size, naming the `field` that it came in.
    """
    name = field.replace("_", " ")
    if len(content) > largest.content:
        most = largest.content // 1024
        raise Malformed(
            worded(
                "the %(field)s has %(length)s kB; at most %(most)s kB are taken",
                field=name,
                length=len(content) // 1024,
                most=most,
            ),
            field,
        )
    picture = read_picture(content)
    if picture is None:
        raise Malformed(worded("the %(field)s must be a PNG, JPEG or WebP picture", field=name), field)
    size = worded(
        "the %(field)s is %(width)s × %(height)s pixels", field=name, width=picture.width, height=picture.height
    )
    if max(picture.width, picture.height) > largest.side:
        raise Malformed(
            worded("%(size)s; at most %(side)s each way are taken, so make it smaller", size=size, side=largest.side),
            field,
        )
    if picture.width * picture.height > largest.pixels:
        millions = largest.pixels // 1_000_000
        raise Malformed(
            worded(
                "%(size)s; at most %(millions)s million in all are taken, so make it smaller",
                size=size,
                millions=millions,
            ),
            field,
        )
    if picture.passes > MOST_PASSES:
        said = worded(
            "the %(field)s is drawn in %(passes)s passes; save it as a PNG, or not progressively",
            field=name,
            passes=picture.passes,
        )
        raise Malformed(said, field)
    return picture


def read_picture(content: bytes) -> Picture | None:
    """The header of a PNG, JPEG or WebP file; None for anything else,
    and where no size is stated.
    """
    for media_type, known, size_of in _FORMATS:
        if known(content):
            size = size_of(content)
            # Overcounting is harmless: within the pixels of a JPEG these two bytes never meet.
            passes = content.count(b"\xff\xda") if media_type == "image/jpeg" else 1
            return Picture(media_type, *size, passes) if size and min(size) > 0 else None
    return None


def _png_size(content: bytes) -> tuple[int, int] | None:
    """The header chunk comes first, or a reader refuses the file."""
    if content[12:16] != b"IHDR" or len(content) < 24:
        return None
    return _big(content, 16, 4), _big(content, 20, 4)


def _jpeg_size(content: bytes) -> tuple[int, int] | None:
    """The first frame's, found by walking the segments: previews within them don't count."""
    at = 2
    while at + 4 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker == 0xFF or marker in _BARE:
            at += 1 if marker == 0xFF else 2
            continue
        if marker in _FRAMES:
            return (_big(content, at + 7, 2), _big(content, at + 5, 2)) if at + 9 <= len(content) else None
        if marker in (_SCAN, _END):
            return None
        at += 2 + max(_big(content, at + 2, 2), 2)
    return None


def _webp_size(content: bytes) -> tuple[int, int] | None:
    """Of the first chunk, in each of its three forms."""
    kind, data = content[12:16], content[20:30]
    if len(data) < 10:
        return None
    if kind == b"VP8X":
        return _little(data, 4, 3) + 1, _little(data, 7, 3) + 1
    if kind == b"VP8 " and data[3:6] == b"\x9d\x01\x2a":
        return _little(data, 6, 2) & 0x3FFF, _little(data, 8, 2) & 0x3FFF
    if kind == b"VP8L" and data[0] == 0x2F:
        bits = _little(data, 1, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return None


def _big(content: bytes, at: int, length: int) -> int:
    return int.from_bytes(content[at : at + length], "big")


def _little(content: bytes, at: int, length: int) -> int:
    return int.from_bytes(content[at : at + length], "little")


_FORMATS: tuple[tuple[str, Callable[[bytes], bool], Callable[[bytes], tuple[int, int] | None]], ...] = (
    ("image/png", lambda content: content.startswith(_PNG), _png_size),
    ("image/jpeg", lambda content: content.startswith(_JPEG), _jpeg_size),
    ("image/webp", lambda content: content[:4] == b"RIFF" and content[8:12] == b"WEBP", _webp_size),
)
