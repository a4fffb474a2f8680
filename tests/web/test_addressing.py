"""One way to address customers, and one word for a package, in all catalogues of a language."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from babel.messages.pofile import read_po

from paydesk.web.messages import WEB

FAMILIAR = {
    "es": r"\b(tú|tus?|te|contigo|puedes|quieres|has|tienes|añade|revisa)\b",
    "it": r"\b(tu|tuoi|tu[aoe]|ti|hai|puoi|vuoi|scegli|aggiungi|rispondi|ciao)\b",
}
"""Words for somebody who is told *tú* or *tu*, as a merchant's team is."""
POLITE = {
    "es": r"\b(usted|vuelva|inicie|confirme|elija una|escr[ií]balo|env[ií]elo|decimales; pida|"
    r"(sus otras|todas sus) tiendas|ha cerrado la sesión|(antes .*|allí )(tendrá|verá))\b",
    "it": r"\b((lo|la|ne) (scriva|invii|scelga)|riapra|chieda|torni da|confermi prima|entri con|suoi negozi|"
    r"lì entrerà|prima .* vede)\b",
}
"""Words for somebody who is told *usted* or *Lei*, as customers are."""
OF_OPERATORS = {"kinds.py", "half_way.py", "waiting.py"}
"""Modules whose texts are for who runs a deployment, whom they call *usted* and *Lei*."""
PACKAGE = {"fr": ("forfait", "formule"), "zh": ("订阅包", "套餐")}
"""The word for a package, and the one for a plan."""


def texts(language: str) -> Iterator[tuple[str, str]]:
    """What customers read, with its English."""
    for door in ("agreement", "card_words", "checkout", "mails", "portal"):
        yield from _texts(door, language)


def _texts(door: str, language: str) -> Iterator[tuple[str, str]]:
    with (WEB / door / "locale" / language / "LC_MESSAGES" / f"{door}.po").open("rb") as file:
        for message in read_po(file):
            places = {place.split("/")[-1] for place, _ in message.locations}
            if places <= OF_OPERATORS or (door == "mails" and not places & {"to_customers.py", "writing.py"}):
                continue
            said = message.string or ""
            forms = [said] if isinstance(said, str) else said
            yield from ((str(message.id), form) for form in forms if message.id)


@pytest.mark.parametrize("language", FAMILIAR)
def test_customers_are_addressed_politely_everywhere(language: str) -> None:
    said = list(texts(language))
    assert len(said) > 300
    assert [text for _, text in said if re.search(FAMILIAR[language], text, re.IGNORECASE)] == []


@pytest.mark.parametrize("language", POLITE)
def test_a_merchants_team_is_addressed_as_friends_everywhere(language: str) -> None:
    said = [text for door in ("account", "console") for _, text in _texts(door, language)]
    assert len(said) > 1000
    assert [text for text in said if re.search(POLITE[language], text, re.IGNORECASE)] == []


def test_italian_writes_lei_in_small_letters() -> None:
    large = r"(?<!^)(?<![.?!:] )\b(Lei|Le|La|Suo|Sua|Suoi|Sue)\b"
    assert [text for _, text in texts("it") if re.search(large, text)] == []


@pytest.mark.parametrize("language", PACKAGE)
def test_a_package_has_one_word_and_a_plan_another(language: str) -> None:
    package, plan = PACKAGE[language]
    for door in ("account", "console", "operator", "portal"):
        for english, text in _texts(door, language):
            english = re.sub(r"%\(\w+\)s", "", english)
            if re.search(r"\bpackages?\b", english) and not re.search(r"\bplans?\b", english):
                assert plan not in text, english
            if re.search(r"\bplans?\b", english) and not re.search(r"\bpackages?\b", english):
                assert package not in text, english
                assert not re.search(r"(?<!费率)方案", text), english
