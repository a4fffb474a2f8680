"""Collect the texts of every door into its gettext
catalogues: `python -m paydesk.web.messages [new language …]`.

Run it (or `make messages`) after changing a text, then fill in the empty `msgstr` lines. Naming
languages, such as `fr` or `pt_BR`, begins a catalogue for each in every door.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.pofile import read_po, write_po

from paydesk.web.noted_texts import NOTED

WEB = Path(__file__).parent
_BELOW = {"console": ("core", "domain", "database", "adapters", "web")}
"""Where the texts are written that a door's pages say, but that are not of the door itself."""

_BENEATH = {"account": "console", "operator": "console", "checkout": "card_words", "portal": "card_words"}
"""Doors that leave to another package what it says already."""

_METHODS = [("**.py", "python"), ("templates/**.html", "jinja2")]
_OPTIONS = {"templates/**.html": {"newstyle_gettext": "true", "trimmed": "true", "silent": "false"}}
_KEYWORDS = {**DEFAULT_KEYWORDS, "mark": None}
_NOTED = ("noted", "noted_as")
_NAMES = re.compile(
    r"3-D Secure|American Express|\bCSV\b|CVC|\bIBAN\b|Mastercard|\bMRR\b|Paydesk|Pingbacks?|\bSKU\b|\bURL\b|UTC|Visa"
)
"""Names and abbreviations that every language leaves as they are."""

_NO_WORDS = re.compile(r"%\(\w+\)s|<[^>]*>|[\W\d_]+")
_HEADER = "# Texts of Paydesk's pages. Update with `make messages`."


def doors() -> list[Path]:
    """The packages of `paydesk.web` that have catalogues."""
    return sorted(path.parent for path in WEB.glob("*/locale"))


@cache
def extract(door: Path) -> Catalog:
    """All texts that the door's templates and modules contain: read once for all its languages."""
    found = Catalog(domain=door.name)
    for folder, methods in ((door, _METHODS), (WEB, _shared_by(door))):
        for filename, _, text, comments, context in extract_from_dir(folder, methods, _OPTIONS, _KEYWORDS):
            found.add(text, None, [(filename, 0)], auto_comments=comments, context=context)
    for path in sorted(door.glob("**/*.py")):
        for text in _translated_at_once(ast.parse(path.read_text())):
            found.add(text, None, [(path.relative_to(door).as_posix(), 0)])
    for below in _BELOW.get(door.name, ()) if door.parent == WEB else ():
        for path in sorted((WEB.parent / below).glob("**/*.py")):
            for text, called in _worded(ast.parse(path.read_text())):
                place = [(path.relative_to(WEB.parent).as_posix(), 0)]
                found.add(text, None, place, auto_comments=[NOTED] if called in _NOTED else [])
    if door.name in _BENEATH:
        _leave_out(found, extract(door.parent / _BENEATH[door.name]))
    return found


def _translated_at_once(module: ast.Module) -> Iterator[str]:
    """The texts that a module writes where it translates them: in `visit.texts.get("…")`,
    or by a short name for that method.
    """
    names = {name for node in ast.walk(module) if isinstance(node, ast.Assign) for name in _names_of_get(node)}
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and (_is_get(node.func) or getattr(node.func, "id", "") in names):
            yield from _written_in(node.args[0])


def _worded(module: ast.Module) -> Iterator[tuple[str | tuple[str, str], str]]:
    """The patterns of texts that are translated where they are shown, and what each is written in.

    `worded("…")`, `noted("…")`, both forms in `plural("…", "…")`, or a name of the module there.
    """
    named = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        called = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and called in ("worded", *_NOTED):
            said = node.args[0]
            chosen = [said.body, said.orelse] if isinstance(said, ast.IfExp) else [said]
            for one in chosen:
                written = _written_in(named.get(one.id, one) if isinstance(one, ast.Name) else one)
                yield from ((text, called) for text in written)
        elif isinstance(node, ast.Call) and called == "plural":
            first, second = (text for argument in node.args for text in _written_in(argument))
            yield (first, second), called


def _written_in(said: ast.expr) -> Iterator[str]:
    """A text, or both of which one is chosen."""
    if isinstance(said, ast.IfExp):
        yield from (*_written_in(said.body), *_written_in(said.orelse))
    elif isinstance(said, ast.Constant) and isinstance(said.value, str):
        yield said.value


def _names_of_get(node: ast.Assign) -> Iterator[str]:
    """What an assignment calls the method that translates: `say, change = visit.texts.get, …`."""
    for target in node.targets:
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        for one, value in zip(targets, values, strict=False):
            if isinstance(one, ast.Name) and _is_get(value):
                yield one.id


def _is_get(node: ast.expr) -> bool:
    """Whether an expression is `texts.get`, of whomever."""
    if not isinstance(node, ast.Attribute) or node.attr != "get":
        return False
    return "texts" in (getattr(node.value, "id", ""), getattr(node.value, "attr", ""))


def _leave_out(found: Catalog, others: Catalog) -> None:
    """Take out of a catalogue what others have just so."""
    for message in [one for one in found if one.id]:
        known = others.get(message.id, message.context)
        if known is not None and known.id == message.id:
            found.delete(message.id, message.context)


def _shared_by(door: Path) -> list[tuple[str, str]]:
    """How the shared templates are read that the door's own bring onto its pages,
    but for those that it has of its own.
    """
    own = "".join(path.read_text() for path in door.glob("templates/**/*.html"))
    shared = sorted(path.name for path in WEB.glob("templates/*.html") if not (door / "templates" / path.name).exists())
    return [(f"templates/{name}", "jinja2") for name in shared if f'"{name}"' in own]


def catalogue_paths(door: Path) -> list[Path]:
    """The .po files of a door, one for each language."""
    return sorted(door.glob(f"locale/*/LC_MESSAGES/{door.name}.po"))


def untranslated(path: Path) -> list[str]:
    """The texts of the door that the catalogue at `path` has no (certain) translation for."""
    catalogue = _read(path)
    return [str(message.id) for message in extract(_door_of(path)) if message.id and not _done(catalogue, message.id)]


def stale(path: Path) -> list[str]:
    """The texts in the catalogue at `path` that the door does not use any more."""
    current = extract(_door_of(path))
    catalogue = _read(path)
    unused = [str(message.id) for message in catalogue if message.id and message.id not in current]
    return unused + [str(message.id) for message in catalogue.obsolete.values()]


def unchanged(path: Path) -> list[str]:
    """The texts that the catalogue at `path` leaves as they are in English,
    but for those that are mere names.
    """
    messages = [message for message in _read(path) if message.id]
    return [str(message.id) for message in messages if set(_forms(message.id)) & set(_forms(message.string))]


def updated(path: Path) -> bytes:
    """The catalogue at `path` with all texts of the door, and the translations that it has."""
    catalogue = _read(path)
    catalogue.update(extract(_door_of(path)), update_creation_date=False)
    catalogue.header_comment = _HEADER
    written = BytesIO()
    write_po(written, catalogue, width=120, include_lineno=False, sort_by_file=True, ignore_obsolete=True)
    return written.getvalue()


def update(path: Path) -> bool:
    """Write a catalogue as it should be; say whether the file changed."""
    written = updated(path)
    changed = not path.exists() or path.read_bytes() != written
    if changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(written)
    return changed


def main(new_languages: list[str]) -> None:
    """Update all catalogues, begin new ones, and say what is left to translate."""
    for door in doors():
        new = [door / "locale" / language / "LC_MESSAGES" / f"{door.name}.po" for language in new_languages]
        for path in [*catalogue_paths(door), *(path for path in new if not path.exists())]:
            changed = "updated" if update(path) else "unchanged"
            left, same = len(untranslated(path)), len(unchanged(path))
            sys.stdout.write(f"{path.relative_to(WEB)}: {changed}, {left} texts to translate, {same} as in English\n")


def _read(path: Path) -> Catalog:
    """The catalogue at `path`, or an empty one for its language if there is no file yet."""
    locale = path.parent.parent.name
    if not path.exists():
        nobody = dict.fromkeys(("msgid_bugs_address", "last_translator", "language_team"), "-")
        return Catalog(locale=locale, domain=path.stem, project="Paydesk", version="1", fuzzy=False, **nobody)
    with path.open("rb") as source:
        return read_po(source, locale=locale, domain=path.stem)


def _door_of(path: Path) -> Path:
    """The door that a catalogue belongs to."""
    return path.parents[3]


def _forms(text: str | Sequence[str] | None) -> list[str]:
    """The forms of a text that say something besides names,
    so that in English they would leave English on a page.
    """
    forms = [text] if isinstance(text, str) else text or []
    return [form for form in forms if _NO_WORDS.sub("", _NAMES.sub("", form))]


def _done(catalogue: Catalog, text: str | list[str] | tuple[str, ...]) -> bool:
    """Whether the catalogue translates the text, in all its plural forms, and nobody doubts it."""
    message = catalogue.get(text)
    if message is None or message.fuzzy:
        return False
    return all(message.string) if isinstance(message.string, tuple) else bool(message.string)


if __name__ == "__main__":
    main(sys.argv[1:])
