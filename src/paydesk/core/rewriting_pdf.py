"""A PDF written anew from what its pages show: the program of a process of its own, which reads a
stranger's file under limits of processor and memory.

Only what is drawn is taken over, page by page, into a document that knows nothing else: scripts,
actions, forms, notes, attachments and what a program stored about the file hang on the document, on
its pages or on what lies over them, and none of these is copied. What is left of them inside
pictures and fonts is dropped by name.

The file comes in at standard input. A line of JSON goes out, `{"pages": 3}` and the new file behind
it, or `{"refused": "…"}`.
"""

from __future__ import annotations

import json
import resource
import sys
import zlib
from collections import deque
from io import BytesIO
from typing import Any

MOST_PAGES = 50
"""Of one file; what banks take altogether."""

_MEMORY = 768 * 1024 * 1024
_PROCESSOR_SECONDS = 20
_DEEPEST = 60
_MOST_OBJECTS = 100_000
_MOST_PIXELS = 64_000_000
_MOST_UNPACKED = 512 * 1024 * 1024
_PART = 1024 * 1024

_DROPPED = frozenset({
    "/AA", "/AcroForm", "/AF", "/Annots", "/EF", "/EmbeddedFiles", "/JavaScript", "/JS", "/Launch", "/Metadata",
    "/OpenAction", "/OPI", "/Parent", "/PieceInfo", "/Popup", "/Ref", "/StructParent", "/StructParents", "/URI", "/XFA",
})  # fmt: skip
_NOTHING_DRAWN = frozenset({"/Action", "/Annot", "/Catalog", "/EmbeddedFile", "/Filespec", "/Page", "/Pages", "/Sig"})
_ACTIONS = frozenset({
    "/GoTo3DView", "/GoToE", "/GoToR", "/Hide", "/ImportData", "/JavaScript", "/Launch", "/Movie", "/Named",
    "/Rendition", "/ResetForm", "/RichMediaExecute", "/SetOCGState", "/Sound", "/SubmitForm", "/URI",
})  # fmt: skip
_FILTERS = frozenset({
    "/FlateDecode", "/DCTDecode", "/CCITTFaxDecode", "/JPXDecode", "/JBIG2Decode", "/ASCII85Decode", "/ASCIIHexDecode",
    "/RunLengthDecode",
})  # fmt: skip
_BOXES = ("/MediaBox", "/CropBox")
_LARGEST_SIDE = 14_400


class _Refused(Exception):
    """It is not rewritten, for a reason that helps."""


def main() -> int:
    """Rewrite what comes in, or say why not; whatever else goes wrong ends the process."""
    _bound()
    try:
        pages, written = rewritten(sys.stdin.buffer.read())
    except _Refused as refused:
        sys.stdout.write(json.dumps({"refused": str(refused)}) + "\n")
        return 0
    sys.stdout.write(json.dumps({"pages": pages}) + "\n")
    sys.stdout.flush()
    sys.stdout.buffer.write(written)
    return 0


def _bound() -> None:
    """Let the system hold this process to what a PDF may take;
    it writes no file, and leaves none of its memory behind.
    """
    for what, most in (
        (resource.RLIMIT_CPU, _PROCESSOR_SECONDS),
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (bound, bound))


def rewritten(content: bytes) -> tuple[int, bytes]:
    """How many pages a PDF has, and the new one. Raises: _Refused; anything for a broken file."""
    # Loaded under the limits.
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(content))
    if reader.is_encrypted:
        raise _Refused("it is locked by a password or against changes; print it anew as a PDF")
    pages = len(reader.pages)
    if not 0 < pages <= MOST_PAGES:
        raise _Refused(f"it has {pages} pages, and 1 to {MOST_PAGES} are taken")
    return pages, _Rewriting(reader).written()


class _Rewriting:
    """One document in the making: `objects` by their new numbers, 1 is the root and 2 its pages."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._objects: dict[int, Any] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._waiting: deque[tuple[int, object]] = deque()
        self._next = 3
        self._unpacked = 0

    def written(self) -> bytes:
        """The new file."""
        from pypdf.generic import ArrayObject, DictionaryObject, NameObject, NumberObject

        kids = ArrayObject(self._page(page) for page in self._reader.pages)
        tree = {"/Type": NameObject("/Pages"), "/Kids": kids, "/Count": NumberObject(len(kids))}
        self._objects[1] = _dictionary(DictionaryObject(), {"/Type": NameObject("/Catalog"), "/Pages": self._at(2)})
        self._objects[2] = _dictionary(DictionaryObject(), tree)
        while self._waiting:
            number, found = self._waiting.popleft()
            self._objects[number] = self._copy(found, 0)
        return self._file()

    def _page(self, page: Any) -> Any:
        """A page with what it shows alone; its number."""
        from pypdf.generic import DictionaryObject, NameObject, NumberObject

        made = {"/Type": NameObject("/Page"), "/Parent": self._at(2)}
        for box in _BOXES:
            if box in page:
                made[box] = _box(page[box])
        if "/MediaBox" not in made:
            raise _Refused("a page of it has no size; print it anew as a PDF")
        made["/Rotate"] = NumberObject(int(page.get("/Rotate", 0)) // 90 * 90 % 360)
        made["/Resources"] = self._copy(page.get("/Resources", DictionaryObject()), 0)
        if "/Contents" in page:
            made["/Contents"] = self._copy(page.raw_get("/Contents"), 0)
        number = self._number()
        self._objects[number] = _dictionary(DictionaryObject(), made)
        return self._at(number)

    def _copy(self, value: object, depth: int) -> object:
        """A value that holds nothing but what is drawn; what it refers to waits for its turn."""
        from pypdf.generic import ArrayObject, DictionaryObject, IndirectObject, NullObject, StreamObject

        if depth > _DEEPEST:
            raise _Refused("it is nested too deep; print it anew as a PDF")
        if isinstance(value, IndirectObject):
            return self._referred(value)
        if isinstance(value, ArrayObject):
            return ArrayObject(self._copy(one, depth + 1) for one in value)
        if not isinstance(value, DictionaryObject):
            return value
        if _draws_nothing(value):
            return NullObject()
        made = {key: self._copy(one, depth + 1) for key, one in value.items() if key not in _DROPPED}
        if not isinstance(value, StreamObject):
            return _dictionary(DictionaryObject(), made)
        self._weigh(value)
        copied = _dictionary(StreamObject(), made)
        copied._data = value._data
        return copied

    def _referred(self, value: Any) -> Any:
        """The new number of an object, copied once; one that refers to itself still does."""
        key = (value.idnum, value.generation)
        if key not in self._numbers:
            self._numbers[key] = self._number()
            self._waiting.append((self._numbers[key], value.get_object()))
        return self._at(self._numbers[key])

    def _weigh(self, stream: Any) -> None:
        """Refuse what unpacks to far more than it is, before anybody who opens the file does it."""
        filters = _names(stream.get("/Filter"))
        if not _FILTERS.issuperset(filters) or filters.count("/FlateDecode") > 1 or "/F" in stream:
            raise _Refused("something in it is packed in a way that is not taken; print it anew as a PDF")
        if int(stream.get("/Width", 1)) * int(stream.get("/Height", 1)) > _MOST_PIXELS:
            raise _Refused(f"a picture in it has more than {_MOST_PIXELS // 1_000_000} million pixels; make it smaller")
        if filters[:1] != ["/FlateDecode"]:
            if "/FlateDecode" in filters:
                raise _Refused("something in it is packed in a way that is not taken; print it anew as a PDF")
            return
        unpacking, rest = zlib.decompressobj(), stream._data
        while rest and not unpacking.eof:
            try:
                self._unpacked += len(unpacking.decompress(rest, _PART))
            except zlib.error:
                return
            if self._unpacked > _MOST_UNPACKED:
                raise _Refused("it unpacks to far more than it seems to be; print it anew as a PDF")
            rest = unpacking.unconsumed_tail

    def _number(self) -> int:
        if self._next > _MOST_OBJECTS:
            raise _Refused("it has too many parts; print it anew as a PDF")
        self._next += 1
        return self._next - 1

    def _at(self, number: int) -> object:
        from pypdf.generic import IndirectObject

        return IndirectObject(number, 0, self._reader)

    def _file(self) -> bytes:
        """All objects, where each is, and which is the first."""
        out = BytesIO()
        out.write(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
        places = []
        for number in range(1, self._next):
            places.append(out.tell())
            out.write(b"%d 0 obj\n" % number)
            self._objects[number].write_to_stream(out)
            out.write(b"\nendobj\n")
        at = out.tell()
        out.write(b"xref\n0 %d\n0000000000 65535 f \n" % self._next)
        out.writelines(b"%010d 00000 n \n" % place for place in places)
        out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (self._next, at))
        return out.getvalue()


def _dictionary(made: Any, entries: dict[str, Any]) -> Any:
    """A dictionary, or a stream, with these entries."""
    from pypdf.generic import NameObject

    for name, value in entries.items():
        made[NameObject(name)] = value
    return made


def _draws_nothing(value: Any) -> bool:
    """Whether a dictionary is an action, an attachment or a part of the old document;
    programs that a printer would run are none of what is seen either.
    """
    if _name(value.get("/Type")) in _NOTHING_DRAWN or _name(value.get("/S")) in _ACTIONS:
        return True
    return _name(value.get("/Subtype")) == "/PS"


def _name(value: object) -> str:
    return value if isinstance(value, str) else ""


def _names(value: Any) -> list[str]:
    """The filters of a stream, of which there may be one, several or none."""
    found = value.get_object() if value is not None else []
    return [_name(one.get_object()) for one in found] if isinstance(found, list) else [_name(found)]


def _box(value: Any) -> Any:
    """The corners of a page."""
    from pypdf.generic import ArrayObject, FloatObject

    corners = [float(one.get_object()) for one in value.get_object()]
    if len(corners) != 4 or any(abs(corner) > _LARGEST_SIDE for corner in corners):
        raise _Refused("a page of it has no size that can be printed")
    return ArrayObject(FloatObject(corner) for corner in corners)


if __name__ == "__main__":
    sys.exit(main())
