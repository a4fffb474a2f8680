"""A PDF written anew shows the same, and holds nothing else."""

from __future__ import annotations

import zlib
from io import BytesIO

import pytest
from pypdf import PdfReader
from tests.core.documents import (
    DRAWN,
    HIDDEN,
    LINK,
    SCRIPT,
    WORDS,
    document,
    hostile,
    packed,
    pdf,
    stream,
    with_picture,
)

from paydesk.core import rewriting_pdf
from paydesk.core.rewriting_pdf import _Refused, rewritten

TWICE = zlib.compress(zlib.compress(b""))


def text_of(content: bytes) -> list[str]:
    return [page.extract_text() for page in PdfReader(BytesIO(content), strict=True).pages]


def test_the_pages_show_what_they_showed() -> None:
    assert rewritten(document(3))[0] == 3
    assert text_of(rewritten(document(3))[1]) == [WORDS] * 3


def test_no_script_action_form_note_attachment_or_word_of_its_maker_is_left() -> None:
    content = hostile()
    secrets = [SCRIPT, HIDDEN, LINK, "hidden.txt"]
    for secret in secrets:
        assert secret.encode() in content
    pages, clean = rewritten(content)
    assert (pages, text_of(clean)) == (1, [WORDS])
    for secret in [*secrets, "JavaScript", "OpenAction", "Annot", "Filespec", "EmbeddedFile", "AcroForm", "Metadata"]:
        assert secret.encode() not in clean, secret
    reader = PdfReader(BytesIO(clean), strict=True)
    assert set(reader.trailer) == {"/Size", "/Root"}
    assert set(reader.root_object) == {"/Type", "/Pages"}
    assert set(reader.pages[0]) == {"/Type", "/Parent", "/MediaBox", "/Rotate", "/Resources", "/Contents"}
    picture = reader.pages[0]["/Resources"]["/XObject"]["/Im"].get_object()  # type: ignore[index]
    assert picture["/Subtype"] == "/Image", "the picture itself stays"
    assert not {"/AF", "/Metadata"} & set(picture)


def test_written_anew_twice_it_is_the_same() -> None:
    once = rewritten(hostile())[1]
    assert rewritten(once)[1] == once


def test_what_refers_to_itself_ends() -> None:
    ring = b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /Im 5 0 R >> >> /Length 0 >>"
    content = document(1, more=[ring + b"\nstream\n\nendstream"], resources=b"/XObject << /Im 5 0 R >>")
    assert text_of(rewritten(content)[1]) == [WORDS]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (document(51), "51 pages"),
        (
            document(1, stream(zlib.compress(zlib.compress(b"")), b"/Filter [/FlateDecode /FlateDecode]")),
            "packed in a way",
        ),
        (document(1, stream(b"x", b"/Filter /Unheard")), "packed in a way"),
        (document(1, stream(b"x", b"/Filter [/ASCIIHexDecode /FlateDecode]")), "packed in a way"),
        (document(1, stream(b"x", b"/F (/etc/passwd)")), "packed in a way"),
        (with_picture(b"/Width 100000 /Height 100000"), "million pixels"),
        (document(1, resources=b"/X " + b"[" * 200 + b"]" * 200), "nested too deep"),
        (pdf([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [] /Count 0 >>"]), "0 pages"),
    ],
)
def test_what_is_not_taken_is_refused_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(_Refused, match=why):
        rewritten(content)


def test_what_unpacks_to_far_more_than_it_is_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting_pdf, "_MOST_UNPACKED", 4 * 1024 * 1024)
    assert rewritten(document(1, packed(bytes(3 * 1024 * 1024))))[0] == 1
    with pytest.raises(_Refused, match="unpacks to far more"):
        rewritten(document(1, packed(bytes(5 * 1024 * 1024))))


def test_one_that_is_locked_is_refused() -> None:
    locked = b"/Encrypt << /Filter /Standard /V 1 /R 2 /O (%b) /U (%b) /P -44 >> /ID [(a) (a)]" % (b"o" * 32, b"u" * 32)
    whole = document().replace(b"/Root 1 0 R", b"/Root 1 0 R " + locked)
    with pytest.raises(_Refused, match="locked"):
        rewritten(whole)


def test_what_is_drawn_is_copied_as_it_is() -> None:
    assert DRAWN.split(b"stream\n")[1][:-4] in rewritten(document())[1]
