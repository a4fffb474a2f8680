from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest
from tests.core.documents import document, hostile
from tests.lengths import long

from paydesk.adapters import pdf_process
from paydesk.adapters.pdf_process import rewrite_pdf
from paydesk.core.errors import Malformed


def program(monkeypatch: pytest.MonkeyPatch, folder: Path, lines: str) -> None:
    """Let another program stand where the one is that rewrites, behind its limits."""
    (folder / "stand_in.py").write_text(f"from paydesk.core.rewriting_pdf import _bound\n_bound()\n{lines}\n")
    starter = f"import runpy; runpy.run_path({str(folder / 'stand_in.py')!r})"
    honest = asyncio.create_subprocess_exec

    async def begin(python: str, *_words: str, **how: object) -> asyncio.subprocess.Process:
        return await honest(python, "-I", "-c", starter, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(pdf_process.asyncio, "create_subprocess_exec", begin)  # type: ignore[attr-defined]


async def test_a_pdf_comes_back_with_its_pages() -> None:
    made = await rewrite_pdf(hostile(), "file")
    assert made.pages == 1
    assert b"JavaScript" not in made.content


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7 and nothing", hostile()[:400], b"<svg/>"])
async def test_what_is_none_is_refused_at_its_field(content: bytes) -> None:
    with pytest.raises(Malformed, match="can't be read") as caught:
        await rewrite_pdf(content, "file")
    assert caught.value.fields == ("file",)


async def test_the_reason_is_told() -> None:
    with pytest.raises(Malformed, match="51 pages"):
        await rewrite_pdf(document(51), "file")


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("bytearray(2 * 1024**3)", id="memory"),
        pytest.param("open('/tmp/escaped', 'w').write('x' * 10)", id="a file"),
        pytest.param("import os; os.abort()", id="a crash"),
        pytest.param("print('{\"pages\": 1}')", id="no file behind the answer"),
        pytest.param("while True: pass", id="processor", marks=long),
    ],
)
async def test_what_exceeds_its_limits_ends_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lines: str) -> None:
    program(monkeypatch, tmp_path, lines)
    with pytest.raises(Malformed, match="can't be read"):
        await rewrite_pdf(document(), "file")


async def test_it_knows_no_secret_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PAYDESK_SECRET_KEY", "hidden")
    said = 'import json, os; print(json.dumps({"refused": " ".join(sorted(os.environ))}))'
    program(monkeypatch, tmp_path, said)
    with pytest.raises(Malformed) as caught:
        await rewrite_pdf(document(), "file")
    assert "PAYDESK" not in str(caught.value)
    assert "PATH" not in str(caught.value)


async def test_one_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(monkeypatch, tmp_path, "import time; time.sleep(3600)")
    with pytest.raises(Malformed, match="can't be read"):
        await rewrite_pdf(document(), "file", patience=0.2)
    left = [" ".join(one.cmdline()) for one in psutil.Process().children()]
    assert [words for words in left if "stand_in" in words] == []
