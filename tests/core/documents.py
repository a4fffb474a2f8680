"""PDFs as their format describes them, written by hand: those of everyday, and hostile ones."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

WORDS = "Signed for on 3 March"
SCRIPT, HIDDEN, LINK = "app.alert(1)", "a hidden attachment", "https://evil.example/"


def pdf(objects: list[bytes], trailer: bytes = b"") -> bytes:
    """A file of numbered objects, of which the first is the root."""
    out, places = b"%PDF-1.7\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return out + (
        b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<< /Size %d /Root 1 0 R %b >>\nstartxref\n%d\n%%%%EOF\n"
        % (size, table, size, trailer, len(out))
    )


def stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %b >>\nstream\n%b\nendstream" % (len(content), entries, content)


def packed(content: bytes, entries: bytes = b"") -> bytes:
    return stream(zlib.compress(content, 9), b"/Filter /FlateDecode " + entries)


DRAWN = packed(f"BT /A 12 Tf 20 50 Td ({WORDS}) Tj ET".encode())


def document(
    pages: int = 1, contents: bytes = DRAWN, page: bytes = b"", root: bytes = b"", more: Sequence[bytes] = (),
    resources: bytes = b"",
) -> bytes:  # fmt: skip
    """A document whose pages are alike; what is `more` begins at 5, and `/A` is a font."""
    kids = b"4 0 R " * pages
    font = b"/Font << /A << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
    return pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R %b >>" % root,
            b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, pages),
            contents,
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 100] /Contents 3 0 R /Resources << %b %b >> %b >>"
            % (font, resources, page),
            *more,
        ]
    )


def hostile() -> bytes:
    """What opens with a script, links, has a form and an attachment, and tells of its maker."""
    script = f"<< /S /JavaScript /JS ({SCRIPT}) >>".encode()
    root = (
        b"/OpenAction 5 0 R /AA << /WC 5 0 R >> /AcroForm << /Fields [7 0 R] /XFA 6 0 R >> /Metadata 6 0 R /Names << "
        b"/JavaScript << /Names [(a) 5 0 R] >> /EmbeddedFiles << /Names [(b) 8 0 R] >> >> /AF [8 0 R]"
    )
    page = b"/Annots [7 0 R] /AA << /O 5 0 R >> /Metadata 6 0 R /PieceInfo << /X 6 0 R >> /AF [8 0 R]"
    widget = f"<< /Type /Annot /Subtype /Widget /FT /Tx /T (a) /Rect [0 0 9 9] /A << /S /URI /URI ({LINK}) >> >>"
    specified = b"<< /Type /Filespec /F (hidden.txt) /EF << /F 9 0 R >> >>"
    attached = stream(HIDDEN.encode(), b"/Type /EmbeddedFile")
    told = packed(b"<x:xmpmeta>by Ada</x:xmpmeta>")
    # A picture that brings an action and an attachment along.
    picture = stream(b"x", b"/Type /XObject /Subtype /Image /Width 1 /Height 1 /A 5 0 R /AF [8 0 R] /Metadata 6 0 R")
    more = [script, told, widget.encode(), specified, attached, picture]
    return document(1, DRAWN, page, root, more, b"/XObject << /Im 10 0 R >>")


def with_picture(entries: bytes) -> bytes:
    """A document with one picture."""
    picture = stream(b"x", b"/Type /XObject /Subtype /Image " + entries)
    return document(1, DRAWN, more=[picture], resources=b"/XObject << /Im 5 0 R >>")
