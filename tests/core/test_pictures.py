import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domain.merchants.drawing import jpeg, png, segment, webp

from paydesk.core.errors import Malformed
from paydesk.core.pictures import Picture, read_picture
from paydesk.domain.business.branding import LONGEST_SIDE, parse_logo

PREVIEW = segment(0xE1, b"Exif\0\0" + jpeg(9, 9))


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (png(240, 80), ("image/png", 240, 80)),
        (jpeg(640, 200), ("image/jpeg", 640, 200)),
        (jpeg(640, 200, frame=0xC2), ("image/jpeg", 640, 200)),
        (jpeg(640, 200, before=PREVIEW), ("image/jpeg", 640, 200)),
        (jpeg(640, 200, before=b"\xff\xff\xff" + segment(0xFE, b"made by hand")[1:]), ("image/jpeg", 640, 200)),
        (jpeg(640, 200, before=segment(0xC4, bytes(20))), ("image/jpeg", 640, 200)),
        (webp(300, 90), ("image/webp", 300, 90)),
        (webp(300, 90, b"VP8L"), ("image/webp", 300, 90)),
        (webp(300, 90, b"VP8X"), ("image/webp", 300, 90)),
    ],
)
def test_each_format_says_how_large_it_is(content: bytes, size: tuple[str, int, int]) -> None:
    picture = read_picture(content)
    assert picture is not None
    assert (picture.media_type, picture.width, picture.height) == size


@pytest.mark.parametrize(
    "content",
    [
        b"",
        png(240, 80)[:23],
        png(0, 80),
        png(240, 80).replace(b"IHDR", b"iTXt"),
        jpeg(640, 0),
        jpeg(640, 200)[:20],
        b"\xff\xd8\xff",
        b"\xff\xd8" + segment(0xDA, bytes(8)) + jpeg(9, 9),
        b"\xff\xd8\xff\xe0\0\0" * 50,
        webp(300, 90)[:24],
        webp(300, 90).replace(b"\x9d\x01\x2a", b"\0\0\0"),
        webp(300, 90).replace(b"VP8 ", b"ALPH"),
        b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
    ],
)
def test_what_states_no_size_is_no_picture(content: bytes) -> None:
    assert read_picture(content) is None
    with pytest.raises(Malformed, match="PNG, JPEG or WebP"):
        parse_logo(content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (png(2**31 - 1, 2**31 - 1), "2147483647 × 2147483647 pixels"),
        (png(LONGEST_SIDE + 1, 1), "at most 4096 each way"),
        (png(2001, 2000), "4 million in all"),
        (jpeg(65_500, 65_500, before=PREVIEW), "65500 × 65500 pixels"),
        (webp(2**24, 2**24, b"VP8X"), "16777216 × 16777216 pixels"),
        (webp(2**14, 2**14, b"VP8L"), "16384 × 16384 pixels"),
        (jpeg(2000, 2000, frame=0xC2, passes=5000), "drawn in 5000 passes"),
    ],
)
def test_a_small_file_that_unpacks_to_gigabytes_is_refused_with_its_size(content: bytes, said: str) -> None:
    with pytest.raises(Malformed, match=said) as caught:
        parse_logo(content)
    assert caught.value.fields == ("logo",)


def test_the_largest_logos_are_taken() -> None:
    for content in (png(2000, 2000), png(LONGEST_SIDE, 900), jpeg(1200, 400, frame=0xC2, passes=12)):
        assert parse_logo(content).content == content


@given(
    start=st.sampled_from([png(9, 9)[:16], jpeg(9, 9)[:4], webp(9, 9)[:16], b"\xff\xd8\xff\xff"]),
    rest=st.binary(max_size=60),
)
def test_any_bytes_are_a_picture_with_a_size_or_none(start: bytes, rest: bytes) -> None:
    picture = read_picture(start + rest)
    assert picture is None or (isinstance(picture, Picture) and picture.width > 0 < picture.height)
