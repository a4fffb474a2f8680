"""Has PDFs of strangers rewritten, each by a process of its own: what one does to the library that
reads it ends with that process, which has neither our environment nor a way to our database.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Final

import msgspec

from paydesk.core.errors import Malformed
from paydesk.core.wording import worded

PATIENCE: Final = 60.0
"""Seconds that a file may take, on a machine that has much to do: its processor time is bounded,
too."""

_PROGRAM: Final = "paydesk.core.rewriting_pdf"
_AT_ONCE: Final = asyncio.Semaphore(2)
_LONGEST_ANSWER: Final = 32 * 1024 * 1024
_BROKEN: Final = worded("the PDF can't be read; print it anew as a PDF, or send a picture of it")


@dataclass(frozen=True, slots=True)
class RewrittenPdf:
    """What became of a PDF: as many pages, and nothing but what they show."""

    content: bytes = field(repr=False)
    pages: int


class _Told(msgspec.Struct, frozen=True):
    pages: int = 0
    refused: str = ""


async def rewrite_pdf(content: bytes, name: str, *, patience: float = PATIENCE) -> RewrittenPdf:
    """The same pages without scripts, actions, forms, notes and attachments.

    Raises: Malformed, naming the field, for what can't be rewritten within the limits.
    """
    if not content.startswith(b"%PDF-"):
        raise Malformed(_BROKEN, name)
    async with _AT_ONCE:
        answer = await _asked(content, patience)
    head, _, written = answer.partition(b"\n")
    try:
        told = msgspec.json.decode(head, type=_Told)
    except msgspec.DecodeError:
        raise Malformed(_BROKEN, name) from None
    if told.refused:
        raise Malformed(worded("the PDF is not taken: %(refused)s", refused=told.refused), name)
    if not told.pages or not written.endswith(b"%%EOF\n"):
        raise Malformed(_BROKEN, name)
    return RewrittenPdf(written, told.pages)


async def _asked(content: bytes, patience: float) -> bytes:
    """What the process answers, nothing if it ends otherwise; it never outlives this call."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-m",
        _PROGRAM,
        env={},
        cwd="/",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(patience):
            answer, _ = await process.communicate(content)
    except TimeoutError:
        return b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return answer if process.returncode == 0 and len(answer) <= _LONGEST_ANSWER else b""
