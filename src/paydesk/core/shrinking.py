"""Pictures drawn anew from their pixels alone, smaller or as large as they are, so that
nothing else of a stranger's file reaches a customer's browser, or a bank.
"""

from __future__ import annotations

from io import BytesIO

from PIL import Image, ImageOps

from paydesk.core.errors import Malformed
from paydesk.core.pictures import Largest, require_picture
from paydesk.core.wording import worded

LARGEST = Largest(content=4 * 1024 * 1024, side=8192, pixels=16_000_000)
"""What a shop's picture may be; unpacked it takes at most 64 MB for a moment."""

MEDIA_TYPE = "image/webp"
_QUALITY = 80
_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP"}
_TRANSPARENT = ("RGBA", "LA", "PA")
_SHARP = 88
_DRAWN_AGAIN = ("image/png", "image/jpeg")


def redrawn(content: bytes, largest: Largest, field: str) -> tuple[str, bytes]:
    """The picture of a PNG or JPEG file as it is seen, in the same format and size on white, and
    its media type.

    Takes a processor for about a second at most.

    Raises: Malformed for what is no such picture, is larger than `largest`, or can't be drawn.
    """
    stated = require_picture(content, largest, field)
    if stated.media_type not in _DRAWN_AGAIN:
        raise Malformed(worded("the %(field)s must be a PNG or JPEG picture", field=field), field)
    written, kind = BytesIO(), _FORMATS[stated.media_type]
    try:
        with Image.open(BytesIO(content), formats=[kind]) as picture:
            if picture.size != (stated.width, stated.height):
                raise ValueError("it states two sizes")
            drawn = _plain(ImageOps.exif_transpose(picture))
            bare = Image.new("RGB", drawn.size, "white")
            bare.paste(drawn, mask=drawn if drawn.mode == "RGBA" else None)
            bare.save(written, kind, **({"quality": _SHARP} if kind == "JPEG" else {"optimize": True}))
    except Exception as error:  # Decoders fail in ways of their own; none of them is ours.
        raise Malformed(
            worded("the %(field)s can't be drawn; save it once more as PNG or JPEG", field=field), field
        ) from error
    return stated.media_type, written.getvalue()


def shrunk(content: bytes, side: int, field: str) -> bytes:
    """A WebP picture of the first one in a file, at most `side` pixels each way.

    Takes a processor for some tens of milliseconds.

    Raises: Malformed for what is no PNG, JPEG or WebP picture, is larger than `LARGEST`, or can't
        be drawn.
    """
    stated = require_picture(content, LARGEST, field)
    try:
        with Image.open(BytesIO(content), formats=[_FORMATS[stated.media_type]]) as picture:
            if picture.size != (stated.width, stated.height):
                raise ValueError("it states two sizes")
            # A JPEG is unpacked no larger than it is needed.
            picture.draft(None, (side, side))
            drawn = _plain(ImageOps.exif_transpose(picture))
            drawn.thumbnail((side, side))
            return _webp(drawn)
    except Exception as error:  # Decoders fail in ways of their own; none of them is ours.
        raise Malformed(
            worded("the %(field)s can't be drawn; save it once more as PNG, JPEG or WebP", field=field), field
        ) from error


def _plain(picture: Image.Image) -> Image.Image:
    """Its pixels as red, green and blue, and how opaque they are where they are not all."""
    is_transparent = picture.mode in _TRANSPARENT or "transparency" in picture.info
    return picture.convert("RGBA" if is_transparent else "RGB")


def _webp(picture: Image.Image) -> bytes:
    """The picture as a file, with nothing but its pixels."""
    bare = Image.new(picture.mode, picture.size)
    bare.paste(picture)
    written = BytesIO()
    bare.save(written, "WEBP", quality=_QUALITY, method=4)
    return written.getvalue()
