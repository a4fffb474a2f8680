from __future__ import annotations

import contextlib
import random
from io import BytesIO
from typing import Any

import pytest
from PIL import Image
from tests.domain.merchants.drawing import jpeg, png, webp

from paydesk.core.errors import Malformed
from paydesk.core.pictures import Largest, read_picture
from paydesk.core.shrinking import redrawn, shrunk

LARGEST = Largest(content=4_500_000, side=8192, pixels=16_000_000)


def drawn(kind: str, size: tuple[int, int], mode: str = "RGB", **how: Any) -> bytes:
    written = BytesIO()
    colours: dict[str, Any] = {"RGB": (20, 120, 60), "RGBA": (20, 120, 60, 0), "L": 90, "CMYK": (0, 200, 0, 0), "P": 3}
    Image.new(mode, size, colours[mode]).save(written, kind, **how)
    return written.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        drawn("PNG", (400, 200)),
        drawn("PNG", (400, 200), "RGBA"),
        drawn("PNG", (400, 200), "P"),
        drawn("PNG", (400, 200), "L"),
        drawn("JPEG", (400, 200)),
        drawn("JPEG", (400, 200), "CMYK"),
        drawn("JPEG", (4000, 2000), progressive=True),
        drawn("WEBP", (400, 200)),
        drawn("WEBP", (400, 200), "RGBA"),
    ],
)
def test_any_picture_becomes_a_small_one_of_the_same_shape(content: bytes) -> None:
    small = read_picture(shrunk(content, 96, "picture"))
    assert small is not None
    assert (small.media_type, small.width, small.height) == ("image/webp", 96, 48)


def test_what_is_transparent_stays_so_and_a_small_one_is_not_blown_up() -> None:
    with Image.open(BytesIO(shrunk(drawn("PNG", (40, 20), "RGBA"), 96, "picture"))) as small:
        assert (small.size, small.mode) == ((40, 20), "RGBA")
        assert small.getpixel((3, 3))[3] == 0  # type: ignore[index]


def test_a_photograph_that_lies_on_its_side_is_turned() -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    small = read_picture(shrunk(drawn("JPEG", (400, 200), exif=turned), 96, "picture"))
    assert small is not None
    assert (small.width, small.height) == (48, 96)


def test_nothing_but_pixels_comes_through() -> None:
    secret = b"<script>alert(1)</script>"
    told = Image.Exif()
    told[0x010E] = secret.decode()
    content = drawn("JPEG", (64, 64), exif=told, comment=secret, icc_profile=secret * 20) + secret
    assert secret in content
    assert secret not in shrunk(content, 96, "picture")


@pytest.mark.parametrize(
    "content", [png(100, 100), jpeg(100, 100), webp(100, 100), b"", b"<svg/>", b"GIF89a" + bytes(99)]
)
def test_what_can_not_be_drawn_is_refused_by_the_name_of_its_field(content: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        shrunk(content, 96, "picture")
    assert caught.value.fields == ("picture",)


@pytest.mark.parametrize(
    "content", [png(8000, 8000), jpeg(65_500, 10), webp(2**24, 2**24, b"VP8X"), bytes(4 * 1024**2 + 1)]
)
def test_a_small_file_that_unpacks_to_gigabytes_is_never_unpacked(
    content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "open", lambda *_, **__: pytest.fail("it was unpacked"))
    with pytest.raises(Malformed):
        shrunk(content, 96, "picture")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_broken_picture_is_refused_and_never_an_error_of_ours(kind: str) -> None:
    whole, chance = bytearray(drawn(kind, (60, 60))), random.Random(4)
    for _ in range(60):
        broken = bytearray(whole[: chance.randrange(8, len(whole))])
        broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        with contextlib.suppress(Malformed):
            assert read_picture(shrunk(bytes(broken), 96, "picture")) is not None


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_picture_drawn_again_has_its_size_and_nothing_but_pixels(kind: str) -> None:
    secret = b"<script>alert(1)</script>"
    told = Image.Exif()
    told[0x010E] = secret.decode()
    content = drawn(kind, (400, 200), exif=told) + secret
    media_type, again = redrawn(content, LARGEST, "file")
    assert secret in content
    assert secret not in again
    seen = read_picture(again)
    assert seen is not None
    assert (media_type, seen.media_type, seen.width, seen.height) == (f"image/{kind.lower()}",) * 2 + (400, 200)


def test_what_is_transparent_is_drawn_again_on_white() -> None:
    with Image.open(BytesIO(redrawn(drawn("PNG", (40, 20), "RGBA"), LARGEST, "file")[1])) as again:
        assert (again.mode, again.getpixel((3, 3))) == ("RGB", (255, 255, 255))


@pytest.mark.parametrize("content", [png(8000, 8000), jpeg(65_500, 10), bytes(4_500_001), png(100, 100), b"GIF89a"])
def test_what_unpacks_to_gigabytes_or_is_broken_is_not_drawn_again(content: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        redrawn(content, LARGEST, "file")
    assert caught.value.fields == ("file",)


def test_only_png_and_jpeg_are_drawn_again() -> None:
    with pytest.raises(Malformed, match="PNG or JPEG"):
        redrawn(drawn("WEBP", (40, 20)), LARGEST, "file")
