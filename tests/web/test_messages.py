"""Every catalogue on disk is whole: nothing is missing, stale or left in English,
and nothing breaks when filled in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from gettext import c2py
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.plurals import get_plural
from babel.messages.pofile import read_po

from paydesk.web import messages

PATHS = [path for door in messages.doors() for path in messages.catalogue_paths(door)]
MOST_UNCHANGED = 0.02
COUNTS = {"number", "count"}
NARROW_SPACE = "\u202f"


def name_of(path: Path) -> str:
    return f"{path.stem}-{language_of(path)}"


each_catalogue = pytest.mark.parametrize("path", PATHS, ids=name_of)


def language_of(path: Path) -> str:
    return path.parent.parent.name


@cache
def read(path: Path) -> Catalog:
    with path.open("rb") as source:
        return read_po(source, locale=language_of(path), domain=path.stem)


def texts_of(path: Path) -> list[Message]:
    return [message for message in read(path) if message.id]


def forms(text: str | Sequence[str] | None) -> list[str]:
    return [text] if isinstance(text, str) else list(text or ())


def in_language(language: str) -> list[str]:
    """All translations into a language, in every form."""
    paths = [path for path in PATHS if language_of(path) == language]
    return [form for path in paths for message in texts_of(path) for form in forms(message.string)]


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"%\((\w+)\)s", text))


def markup(text: str) -> list[str]:
    return re.findall(r"<[^>]*>", text)


def numbers_by_form(catalogue: Catalog) -> dict[int, list[int]]:
    """Which numbers each plural form stands for."""
    form_of = c2py(catalogue.plural_expr)
    found: dict[int, list[int]] = {}
    for number in range(1001):
        found.setdefault(form_of(number), []).append(number)
    return found


@each_catalogue
def test_every_text_is_translated_and_none_is_stale(path: Path) -> None:
    assert messages.untranslated(path) == [], "run `make messages` and translate these"
    assert messages.stale(path) == [], "run `make messages`"


@each_catalogue
def test_collecting_the_texts_again_changes_nothing(path: Path) -> None:
    assert messages.updated(path) == path.read_bytes(), "run `make messages`"


@each_catalogue
def test_at_most_2_percent_of_a_catalogue_equals_the_english(path: Path) -> None:
    same = messages.unchanged(path)
    assert len(same) <= MOST_UNCHANGED * len(texts_of(path)), same


@each_catalogue
def test_the_plural_rule_is_the_languages_own(path: Path) -> None:
    catalogue, known = read(path), get_plural(language_of(path))
    assert (catalogue.num_plurals, catalogue.plural_expr) == (known.num_plurals, known.plural_expr)
    assert f"Plural-Forms: nplurals={known.num_plurals};" in path.read_text()


@each_catalogue
def test_every_number_finds_its_plural_form(path: Path) -> None:
    catalogue = read(path)
    assert sorted(numbers_by_form(catalogue)) == list(range(catalogue.num_plurals))
    for message in texts_of(path):
        if message.pluralizable:
            assert len(forms(message.string)) == catalogue.num_plurals, message.id
            assert all(forms(message.string)), message.id


@each_catalogue
def test_placeholders_and_markup_are_those_of_the_english(path: Path) -> None:
    numbers = numbers_by_form(read(path))
    for message in texts_of(path):
        expected = placeholders(forms(message.id)[0])
        for at, form in enumerate(forms(message.string)):
            # A form for one number only, as Arabic has for two, may say the number in a word.
            spoken = COUNTS if message.pluralizable and len(numbers[at]) == 1 else set()
            assert expected - spoken <= placeholders(form) <= expected, form
            assert markup(form) == markup(forms(message.id)[0]), form
            if message.python_format:
                assert form % dict.fromkeys(expected, "…")
            else:
                # A page fills in each text, and breaks at a per cent sign by itself.
                assert form.count("%") == forms(message.id)[0].count("%"), form


@each_catalogue
def test_no_translation_has_stray_spaces(path: Path) -> None:
    strays = [form for message in texts_of(path) for form in forms(message.string) if form != form.strip()]
    assert strays + [form for form in in_language(language_of(path)) if "  " in form] == []


def test_french_punctuation_has_its_narrow_no_break_spaces() -> None:
    for text in in_language("fr"):
        text = re.sub(r"\w+://", "", text)
        assert re.findall(rf"[^{NARROW_SPACE}][:;!?»]|«[^{NARROW_SPACE}]", text) == [], text
        assert "'" not in text


def test_spanish_questions_and_exclamations_open_as_they_close() -> None:
    for text in in_language("es"):
        assert (text.count("?"), text.count("!")) == (text.count("¿"), text.count("¡")), text


def test_words_left_in_english_are_noticed_but_names_are_not(tmp_path: Path) -> None:
    path = tmp_path / "shop" / "locale" / "fr" / "LC_MESSAGES" / "shop.po"
    path.parent.mkdir(parents=True)
    entries = {"Terms": "Terms", "Visa": "Visa", "%(price)s USD": "", "3-D Secure": "3-D Secure", "Shop": "Boutique"}
    path.write_text("\n".join(f'msgid "{text}"\nmsgstr "{said}"\n' for text, said in entries.items()))
    with path.open("a") as more:
        more.write('\nmsgid "a day"\nmsgid_plural "%(n)s days"\nmsgstr[0] "un jour"\nmsgstr[1] "%(n)s days"\n')
    assert messages.unchanged(path) == ["Terms", "('a day', '%(n)s days')"]


def test_a_new_language_begins_with_all_texts_and_keeps_translations(tmp_path: Path) -> None:
    door = tmp_path / "shop"
    (door / "templates").mkdir(parents=True)
    page = door / "templates" / "page.html"
    page.write_text("{% trans %}Good   day{% endtrans %} {{ _('Bye') }}")
    (door / "wording.py").write_text("TEXT = mark('Thanks')")
    path = door / "locale" / "fr" / "LC_MESSAGES" / "shop.po"
    assert messages.update(path)
    assert sorted(messages.untranslated(path)) == ["Bye", "Good   day", "Thanks"]
    path.write_text(path.read_text().replace('msgid "Bye"\nmsgstr ""', 'msgid "Bye"\nmsgstr "Au revoir"'))
    page.write_text("{{ _('Bye') }}")
    messages.extract.cache_clear()
    assert messages.stale(path) == ["Good   day"]
    assert messages.update(path)
    assert messages.stale(path) == []
    assert not messages.update(path), "once more changes nothing"
    assert messages.untranslated(path) == ["Thanks"]
    assert not messages.update(path)
