"""The beginnings of pictures, as programs that draw write them, with any size that a test wants
to state.
"""

from __future__ import annotations

import struct


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x06\0\0\0" + bytes(60)


def jpeg(width: int, height: int, *, before: bytes = b"", passes: int = 1, frame: int = 0xC0) -> bytes:
    head = struct.pack(">BBHBHH", 0xFF, frame, 17, 8, height, width) + bytes(10)
    return b"\xff\xd8" + segment(0xE0, b"JFIF\0" + bytes(9)) + before + head + segment(0xDA, bytes(8)) * passes


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def webp(width: int, height: int, kind: bytes = b"VP8 ") -> bytes:
    stated = {
        b"VP8 ": b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width & 0xFFFF, height & 0xFFFF),
        b"VP8L": b"\x2f" + struct.pack("<I", ((width - 1) & 0x3FFF) | ((height - 1) & 0x3FFF) << 14) + bytes(5),
        b"VP8X": bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
    }[kind]
    return b"RIFF" + struct.pack("<I", len(stated) + 12) + b"WEBP" + kind + struct.pack("<I", len(stated)) + stated
