import pytest
from hypothesis import given
from hypothesis import strategies as st

from paydesk.core.errors import Malformed
from paydesk.domain.business.colours import (
    DARK_GROUND,
    READABLE,
    WHITE,
    contrast,
    dark_shades,
    light_shades,
    parse_accent,
)

COLOURS = st.integers(0, 0xFFFFFF).map("#{:06x}".format)


def test_contrast_is_that_of_the_guideline() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#1746a2", "#1746a2") == 1


@given(COLOURS)
def test_a_colour_that_nobody_can_read_comes_back_with_a_shade_that_they_can(colour: str) -> None:
    try:
        accent = parse_accent(colour)
    except Malformed as error:
        accent = parse_accent(error.message.rsplit("; ", 1)[1].split(",")[0])
    light, dark = light_shades(accent), dark_shades(accent)
    assert contrast(light.accent, WHITE) >= READABLE
    assert contrast(light.strong, light.on_accent) >= READABLE
    assert contrast(dark.accent, DARK_GROUND) >= READABLE
    assert contrast(dark.accent, dark.on_accent) >= READABLE
    assert contrast(dark.strong, dark.on_accent) >= READABLE


@pytest.mark.parametrize("text", ["", "red", "#fff", "#12345g", "#1746a2;}body{display:none", "url(x)", "#1746A2\n#"])
def test_what_is_no_colour_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        parse_accent(text)
