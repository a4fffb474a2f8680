"""A text is English for programs, and can be said in another language with the same values."""

from __future__ import annotations

import copy
import pickle

import pytest

from paydesk.core.errors import Malformed
from paydesk.core.storable import storable_json
from paydesk.core.wording import Worded, plain, plural, without, worded

GERMAN = {
    '%(field)s "%(text)s" must be greater than 0': "%(field)s: „%(text)s“ muss größer als 0 sein",
    "%(why)s; try again": "%(why)s; versuchen Sie es noch einmal",
    "the order is paid": "Die Bestellung ist bezahlt",
    "wait %(count)s minute": "warten Sie %(count)s Minute",
    "wait %(count)s minutes": "warten Sie %(count)s Minuten",
    "amount": "Betrag",
}


class German:
    """A language with one form for 1 and another for all else, as German has them."""

    def get(self, text: str) -> str:
        return GERMAN.get(text, text)

    def of_number(self, one: str, many: str, number: int) -> str:
        return self.get(one if number == 1 else many)


german = German()


def test_a_text_is_english_by_itself_and_says_its_values_in_another_language() -> None:
    text = worded('%(field)s "%(text)s" must be greater than 0', field="amount", text="0")
    assert text == 'amount "0" must be greater than 0'
    assert text.said(german) == "Betrag: „0“ muss größer als 0 sein"


def test_a_text_within_a_text_is_said_in_the_same_language() -> None:
    text = worded("%(why)s; try again", why=worded("the order is paid"))
    assert text == "the order is paid; try again"
    assert text.said(german) == "Die Bestellung ist bezahlt; versuchen Sie es noch einmal"


def test_only_the_name_of_a_field_is_looked_up_never_what_somebody_typed() -> None:
    assert worded("%(why)s; try again", why="amount").said(german) == "amount; versuchen Sie es noch einmal"


def test_a_per_cent_sign_in_what_somebody_typed_is_no_placeholder() -> None:
    assert worded("%(why)s; try again", why="%(x)s 5 %").said(german) == "%(x)s 5 %; versuchen Sie es noch einmal"


def test_an_error_keeps_what_it_can_be_said_from_and_hides_card_numbers_in_it() -> None:
    message = Malformed(worded("%(why)s; try again", why="4242 4242 4242 4242")).message
    assert isinstance(message, Worded)
    assert "4242" not in message + message.said(german)


def test_a_card_number_that_two_values_make_up_is_hidden_in_every_language() -> None:
    message = Malformed(worded("%(one)s%(two)s is wrong", one="42424242", two="42424242")).message
    assert "4242" not in message
    assert not isinstance(message, Worded)


def test_a_text_is_copied_with_what_it_was_made_from() -> None:
    text = worded("%(why)s; try again", why=worded("the order is paid"))
    for other in (copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert other == text
        assert other.said(german) == text.said(german)


def test_a_text_with_a_number_has_the_form_of_the_number_in_each_language() -> None:
    one, two = (plural("wait %(count)s minute", "wait %(count)s minutes", count=count) for count in (1, 2))
    assert (one, two) == ("wait 1 minute", "wait 2 minutes")
    assert (one.said(german), two.said(german)) == ("warten Sie 1 Minute", "warten Sie 2 Minuten")
    assert pickle.loads(pickle.dumps(one)).said(german) == "warten Sie 1 Minute"
    hidden = without(two, lambda text: text)
    assert isinstance(hidden, Worded)
    assert hidden.said(german) == "warten Sie 2 Minuten"


def test_json_has_it_as_the_text_that_it_is() -> None:
    said = worded("%(field)s is blank", field="name")
    assert storable_json({"why": said}) == '{"why":"name is blank"}'
    with pytest.raises(TypeError):
        plain(object())
