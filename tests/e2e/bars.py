"""A font in which every letter is a bar of one width, made here: pages drawn with it look the same
on machines with other fonts, or none, and hold still when a number or a date changes.
"""

from __future__ import annotations

import base64
import struct

EM, WIDTH, TOP = 1000, 520, 520
"""Units of the square; how wide each letter is, and how high its bar."""

STYLE = """
@font-face {{ font-family: Bars; src: url(data:font/ttf;base64,{font}); }}
*, *::before, *::after, *::placeholder, *::file-selector-button {{
  font-family: Bars !important;
  letter-spacing: 0 !important;
  text-rendering: geometricPrecision !important;
  caret-color: transparent !important;
  transition: none !important;
  animation: none !important;
  scroll-behavior: auto !important;
}}
"""


def style() -> str:
    """The stylesheet that draws a page in bars."""
    return STYLE.format(font=base64.b64encode(font()).decode())


def font() -> bytes:
    """The font, as a TrueType file with the tables that a browser asks for."""
    bar = struct.pack(">hhhhh", 1, 40, 0, WIDTH - 40, TOP) + struct.pack(">HH", 3, 0)
    bar += bytes([1, 1, 1, 1]) + struct.pack(">4h", 40, 0, WIDTH - 80, 0) + struct.pack(">4h", 0, TOP, 0, -TOP)
    bar += bytes(-len(bar) % 4)
    tables = {
        b"OS/2": _os2(),
        b"cmap": _cmap(),
        b"glyf": bar,
        b"head": struct.pack(
            ">IIIIHHQQhhhhHHhhh", 0x10000, 0x10000, 0, 0x5F0F3CF5, 3, EM, 0, 0, 0, 0, WIDTH, TOP, 0, 8, 2, 1, 0
        ),
        b"hhea": struct.pack(">IhhhHhhhhhhhhhhhH", 0x10000, 900, -250, 0, WIDTH, 0, 0, WIDTH, 1, *[0] * 7, 2),
        b"hmtx": struct.pack(">HhHh", WIDTH, 0, WIDTH, 40),
        # The first letter, which is also the space, is empty.
        b"loca": struct.pack(">III", 0, 0, len(bar)),
        b"maxp": struct.pack(">IH13H", 0x10000, 2, 4, 1, 0, 0, 2, *[0] * 8),
        b"name": _name(),
        b"post": struct.pack(">IIhhIIIII", 0x30000, 0, -100, 50, 1, 0, 0, 0, 0),
    }
    return _packed(tables)


def _cmap() -> bytes:
    """All characters but the space and its kin show the bar (format 13: many to one)."""
    groups = [(0x21, 0x9F, 1), (0xA0, 0xA0, 0), (0xA1, 0x1FFF, 1), (0x2000, 0x200F, 0), (0x2010, 0x10FFFF, 1)]
    groups = [(0x20, 0x20, 0), *groups]
    body = b"".join(struct.pack(">III", *group) for group in groups)
    return struct.pack(">HHHHI", 0, 1, 3, 10, 12) + struct.pack(">HHIII", 13, 0, 16 + len(body), 0, len(groups)) + body


def _name() -> bytes:
    text = "Bars".encode("utf-16-be")
    kinds = (1, 2, 3, 4, 5, 6)
    records = b"".join(struct.pack(">6H", 3, 1, 0x409, kind, len(text), 0) for kind in kinds)
    return struct.pack(">HHH", 0, len(kinds), 6 + len(records)) + records + text


def _os2() -> bytes:
    head = struct.pack(">HhHHH11h", 4, WIDTH, 400, 5, 0, 500, 500, 0, 100, 500, 500, 0, 300, 50, 250, 0)
    rest = struct.pack(">IIII4sHHHhhhHH", 1, 0, 0, 0, b"NONE", 0x40, 0x20, 0xFFFF, 900, -250, 0, 900, 250)
    return head + bytes(10) + rest + struct.pack(">IIhhHHH", 1, 0, TOP, TOP, 0, 0x20, 1)


def _packed(tables: dict[bytes, bytes]) -> bytes:
    count = len(tables)
    power = 1 << (count.bit_length() - 1)
    head = struct.pack(">IHHHH", 0x10000, count, power * 16, power.bit_length() - 1, (count - power) * 16)
    offset, directory, body = 12 + 16 * count, b"", b""
    for tag, content in tables.items():
        directory += struct.pack(">4sIII", tag, _sum(content), offset + len(body), len(content))
        body += content + bytes(-len(content) % 4)
    return head + directory + body


def _sum(content: bytes) -> int:
    padded = content + bytes(-len(content) % 4)
    return sum(int.from_bytes(padded[at : at + 4]) for at in range(0, len(padded), 4)) & 0xFFFFFFFF
