"""What servers answer, well and badly: bytes by name, whole, after which the server closes."""

from __future__ import annotations

from collections.abc import Iterator


def _answer(*lines: str, body: bytes = b"ok", status: str = "HTTP/1.1 200 OK") -> bytes:
    """An answer of these header lines."""
    return "\r\n".join([status, *lines]).encode("latin-1") + b"\r\n\r\n" + body


def _chunked(body: bytes) -> bytes:
    return _answer("Transfer-Encoding: chunked", body=body)


PLAIN = _answer("Content-Length: 2")
CHUNKED = _chunked(b"2\r\nok\r\n0\r\n\r\n")


def _status_lines() -> Iterator[tuple[str, bytes]]:
    codes = "200 201 202 203 204 205 206 207 226 300 301 302 303 304 307 308 400 401 403 404 405 408 410 413 429"
    for code in [*codes.split(), "451", "500", "501", "502", "503", "504", "599", "600", "999", "099", "000"]:
        yield f"status {code}", _answer("Content-Length: 2", status=f"HTTP/1.1 {code} Said so")
    for code in ("204", "205", "304", "200"):
        yield f"status {code} without a body", _answer("Content-Length: 0", status=f"HTTP/1.1 {code} -", body=b"")
        yield f"status {code} without a length", _answer(status=f"HTTP/1.1 {code} -", body=b"")
    for version in ("HTTP/1.0", "HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/3.0", "HTTP/1", "HTTP/11", "HTTP/1.1.1"):
        yield f"version {version}", _answer("Content-Length: 2", status=f"{version} 200 OK")
    for line in (
        "HTTP/1.1 200",
        "HTTP/1.1 200 ",
        "HTTP/1.1  200 OK",
        "HTTP/1.1\t200 OK",
        "HTTP/1.1 200\tOK",
        " HTTP/1.1 200 OK",
        "http/1.1 200 OK",
        "ICY 200 OK",
        "RTSP/1.0 200 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 -200 OK",
        "HTTP/1.1 0x200 OK",
        "HTTP/1.1 OK",
        "HTTP/1.1",
        "200 OK",
        "HTTP/1.1 200 " + "x" * 5000,
        "HTTP/1.1 200 Sch\xf6n",
        "HTTP/1.1 200 a\x00b",
        "HTTP/1.1 200 a\x07b",
        "POST / HTTP/1.1",
    ):
        yield f"status line {line[:30]!r}", _answer("Content-Length: 2", status=line)
    for before in (b"\r\n", b"\n", b"\r\n\r\n", b" ", b"\0", b"\xef\xbb\xbf", b"ok"):
        yield f"{before!r} before the answer", before + PLAIN


def _lengths() -> Iterator[tuple[str, bytes]]:
    for value in (
        *(
            "2",
            "02",
            "0000000002",
            "+2",
            "-2",
            "2 ",
            "\t2",
            "2.0",
            "0x2",
            "2, 2",
            "2,2",
            "2;",
            "2 2",
            "",
            "two",
            "\xb2",
        ),
        *("1", "0", "3", "10", "18446744073709551615", "18446744073709551616", "99999999999999999999999"),
    ):
        yield f"Content-Length {value!r}", _answer(f"Content-Length: {value}")
    for name in ("content-length", "CONTENT-LENGTH", "Content-Length ", "Content_Length", "X-Content-Length"):
        yield f"length as {name!r}", _answer(f"{name}: 2")
    yield "length without a blank", _answer("Content-Length:2")
    yield "two lengths alike", _answer("Content-Length: 2", "Content-Length: 2")
    yield "two lengths", _answer("Content-Length: 2", "Content-Length: 3")
    yield "no length", _answer("Content-Type: text/plain")
    yield "no header", _answer()
    yield "HTTP/1.0 without a length", _answer(status="HTTP/1.0 200 OK")
    for value in ("close", "Close", "keep-alive", "keep-alive, close", "close, keep-alive", "upgrade", "x", ""):
        yield f"Connection {value!r}", _answer(f"Connection: {value}", "Content-Length: 2")
        yield (
            f"HTTP/1.0, Connection {value!r}",
            _answer(f"Connection: {value}", "Content-Length: 2", status="HTTP/1.0 200 OK"),
        )
        yield f"Connection {value!r} without a length", _answer(f"Connection: {value}")


def _encodings() -> Iterator[tuple[str, bytes]]:
    chunks = b"2\r\nok\r\n0\r\n\r\n"
    for value in (
        *("chunked", "CHUNKED", " chunked ", "chunked, chunked", "gzip, chunked", "chunked, gzip", "identity", "gzip"),
        *("identity, chunked", "chunked;q=1", "x-chunked", "chunke", "", "chunked,", ",chunked", "\x0bchunked"),
    ):
        yield f"Transfer-Encoding {value!r}", _answer(f"Transfer-Encoding: {value}", body=chunks)
    yield "encoding, then length", _answer("Transfer-Encoding: chunked", "Content-Length: 2", body=chunks)
    yield "length, then encoding", _answer("Content-Length: 12", "Transfer-Encoding: chunked", body=chunks)
    yield "encoding twice", _answer("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=chunks)
    yield "encoding taken back", _answer("Transfer-Encoding: chunked", "Transfer-Encoding: identity", body=chunks)
    yield "encoding for HTTP/1.0", _answer("Transfer-Encoding: chunked", body=chunks, status="HTTP/1.0 200 OK")
    for body in (
        *(b"1\r\no\r\n1\r\nk\r\n0\r\n\r\n", b"02\r\nok\r\n00\r\n\r\n", b"2;a=b\r\nok\r\n0;c\r\n\r\n"),
        *(b"2 \r\nok\r\n0\r\n\r\n", b" 2\r\nok\r\n0\r\n\r\n", b"0x2\r\nok\r\n0\r\n\r\n", b"-2\r\nok\r\n0\r\n\r\n"),
        *(b"2\r\nok0\r\n\r\n", b"2\nok\n0\n\n", b"2\r\nok\r\n0\r\n", b"2\r\nok\r\n", b"2\r\nok", b"2\r\no", b"", b"2"),
        *(b"\r\nok\r\n0\r\n\r\n", b"g\r\nok\r\n0\r\n\r\n", b"3\r\nok\r\n0\r\n\r\n", b"1\r\nok\r\n0\r\n\r\n"),
        *(b"2\r\nok\r\n0\r\nX: y\r\n\r\n", b"2\r\nok\r\n0\r\nContent-Length: 9\r\n\r\n", b"0\r\n\r\n", b"ok"),
        *(b"2\r\nok\r\n0\r\nTransfer-Encoding: x\r\n\r\n", b"2\r\nok\r\n0\r\nbroken\r\n\r\n", b"2\rok\r0\r\r"),
        *(
            b"FFFFFFFFFFFFFFFFF\r\nok",
            b"7fffffffffffffff\r\nok",
            b'2;a="\r\n"\r\nok\r\n0\r\n\r\n',
            b"2\r\nok\r\n0\r\n\r\nx",
        ),
        *(b"2\r\nok\r\n0\r\n\r\n\r\n", b"2;" + b"e" * 9000 + b"\r\nok\r\n0\r\n\r\n"),
    ):
        yield f"chunks {body[:36]!r}", _chunked(body)


def _headers() -> Iterator[tuple[str, bytes]]:
    for line in (
        *(
            "X: y",
            "X:",
            "X",
            ": y",
            "X y: z",
            "X : y",
            " X: y",
            "X: a\x00b",
            "X: a\x07b",
            "X: \xe9",
            "\xe9: x",
            "X@: y",
        ),
        *(
            "X: a\r\n b",
            "X: a\r\n\tb",
            "X: a\rb",
            "X: a\nY: b",
            "Set-Cookie: a=b",
            "Location: http://127.0.0.1:1/",
        ),
        *("Content-Encoding: gzip", "Content-Encoding: br", "Content-Type: \x80", "Upgrade: h2c", "Trailer: X"),
    ):
        yield f"header {line!r}", _answer(line, "Content-Length: 2")
    for number in (50, 120, 200, 400):
        yield f"{number} headers", _answer(*(f"X-{index}: y" for index in range(number)), "Content-Length: 2")
    for letters in (8000, 9000, 30_000, 70_000):
        yield f"a header of {letters} letters", _answer("X: " + "y" * letters, "Content-Length: 2")
    yield "bare line feeds", PLAIN.replace(b"\r\n", b"\n")
    yield "bare carriage returns", PLAIN.replace(b"\r\n", b"\r")
    yield "a bare line feed at the end of the head", PLAIN.replace(b"\r\n\r\n", b"\r\n\n")


def _interim() -> Iterator[tuple[str, bytes]]:
    for code in ("100", "102", "103", "150", "199"):
        yield f"{code} before", f"HTTP/1.1 {code} Wait\r\n\r\n".encode() + PLAIN
    yield "100 five times", b"HTTP/1.1 100 Continue\r\n\r\n" * 5 + PLAIN
    yield "100 with headers", b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n" + CHUNKED
    yield "100 with a length", b"HTTP/1.1 100 Continue\r\nContent-Length: 2\r\n\r\n" + PLAIN
    yield "100 and no more", b"HTTP/1.1 100 Continue\r\n\r\n"
    yield "100 and half an answer", b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN[:20]
    yield "101", _answer(status="HTTP/1.1 101 Switching Protocols", body=b"")
    upgrade = ("Upgrade: x", "Connection: upgrade")
    yield "101 with an upgrade", _answer(*upgrade, status="HTTP/1.1 101 Switching Protocols", body=b"")
    yield "101 and bytes", _answer(*upgrade, status="HTTP/1.1 101 Switching Protocols")
    yield "200 with an upgrade", _answer(*upgrade, "Content-Length: 2")


def _bodies() -> Iterator[tuple[str, bytes]]:
    for body in (b"", b"OK", b" ok\r\n", b"NOK", b"ok\0", b"\xff", b"<p>ok</p>", b'"ok"'):
        yield f"body {body!r}", _answer(f"Content-Length: {len(body)}", body=body)
    for length in (4095, 4096, 4097, 20_000):
        yield f"a body of {length} bytes", _answer(f"Content-Length: {length}", body=b"x" * length)
        yield f"ok and blanks, {length} bytes", _answer(body=b"ok".ljust(length))
    for more in (b"\r\n", b"\n", b"x", b"ok", b"\0", PLAIN, CHUNKED, b" " * 1000):
        yield f"{more[:25]!r} after the answer", PLAIN + more
        yield f"{more[:25]!r} after the last chunk", CHUNKED + more
        yield f"{more[:25]!r} after an answer that closes", _answer("Connection: close", "Content-Length: 2") + more


def _parts() -> Iterator[tuple[str, bytes]]:
    for length in (0, 1, 5, 8, 9, 12, 15, 16, 17, 18, 30, 34, 35, 36, 37, 38):
        yield f"{length} bytes of an answer", PLAIN[:length]
    for length in (45, 47, 48, 49, 50, 52, 54, 55, 56, 58):
        yield f"{length} bytes of one in chunks", CHUNKED[:length]
    for other in (
        *(
            b"SSH-2.0-OpenSSH_9\r\n",
            b"220 mail.example ESMTP\r\n",
            b"<html>ok</html>",
            b'{"ok":true}',
            b"ok",
            b"\0" * 64,
        ),
        *(b"\x15\x03\x01\x00\x02\x02\x46", b"\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"H" * 70_000),
    ):
        yield f"no HTTP: {other[:12]!r}", other


GROUPS = (_status_lines, _lengths, _encodings, _headers, _interim, _bodies, _parts)

EVERY = {name: answer for group in GROUPS for name, answer in group()}

_NO_END = "what says neither how long it is nor that it is chunked might as well be cut off"
_LONG_HEADS = "all heads together are bounded, not each line"
_AFTER_ITS_END = "what comes after an answer would be the next one's, a blank line announces it"

DIFFERENT = {
    "Content-Length '18446744073709551615'": "a length is believed, however long",
    "header 'X: a\\x00b'": "a byte that is forbidden, but misplaces no end",
    **dict.fromkeys(
        ("200 headers", "400 headers", "a header of 9000 letters", "a header of 30000 letters"), _LONG_HEADS
    ),
    **{
        f"Transfer-Encoding {value!r}": _NO_END
        for value in (
            *("chunked, gzip", "identity", "gzip", "chunked;q=1", "x-chunked", "chunke", "", "chunked,", "\x0bchunked"),
        )
    },
    "encoding taken back": _NO_END,
    "101 and bytes": _AFTER_ITS_END,
    "chunks b'2\\r\\nok\\r\\n0\\r\\n\\r\\n\\r\\n'": _AFTER_ITS_END,
    **{
        f"{more!r} after {what}": _AFTER_ITS_END
        for what in ("the answer", "the last chunk")
        for more in (b"\r\n", b"\n", PLAIN[:25], CHUNKED[:25])
    },
    **{f"{more!r} after an answer that closes": _AFTER_ITS_END for more in (b"\r\n", b"\n")},
}
"""What we read otherwise than aiohttp does, and why."""
