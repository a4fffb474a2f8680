"""Two different readings never share an accepted signature, at whatever doors they are read.

Forgers are modelled from outside: what a shop signed is cut up and joined again in every way in
which the signed string stays the same, and whatever the service would accept must say what the
shop said.
"""

import hmac
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import combinations, pairwise
from typing import TypeAlias
from urllib.parse import quote_plus, unquote_plus

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from tests.lengths import at_length

from paydesk_client.parameters import Value, is_nested, items, leaves, text
from paydesk_client.readings import ADDRESS_PARTS, SIGNED_FIELDS
from paydesk_client.signature import MalformedForm, Version, canonical_string, parse_form, sign, verify

KEY = "9c4d4efcfe74317c5df7d564cfe9565t"
Fields: TypeAlias = dict[str, Value]
Token: TypeAlias = tuple[str, str]

# Few names and many separators, so that most examples can be read in another way.
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much]
NAMES = st.sampled_from(["a", "d", "note", "zone", "Z", "m", "phone", "city", "zip", "0", "email", "details", "q"])
VALUES = st.lists(
    st.sampled_from(
        [";", "=", "&", "x", " ", "+", "%26", "%3D", ";a=1", ";note=", ";zone=2", ";Z=", ";status=", ";0=", ";phone=1"]
    ),
    max_size=4,
).map("".join)
FORM = {"api_key": "p", "description": "x", "merchant_order_id": "7"}
DELIVERY = {"public_key": "p", "payment_order_id": "7"}
NESTED: st.SearchStrategy[Fields] = st.fixed_dictionaries(
    {},
    optional={
        "shipping_address": st.dictionaries(st.sampled_from(ADDRESS_PARTS), VALUES, min_size=1, max_size=3),
        "attachments": st.lists(VALUES, min_size=1, max_size=2),
    },
)


@st.composite
def requests(draw: st.DrawFn, version: Version) -> Fields:
    """What a shop sends to one of the doors, with some fields of its own and values
    that a customer has chosen.
    """
    fields: Fields = dict(draw(st.sampled_from([FORM, DELIVERY])))
    fields.update(draw(st.dictionaries(NAMES, VALUES, max_size=3)))
    fields.update(draw(NESTED))
    if draw(st.booleans()) and "description" in fields:
        fields["description"] = draw(VALUES) + "x"
    return {**fields, "sign_version": version}


def reading(fields: Fields, version: Version) -> frozenset[tuple[tuple[str, ...], str]]:
    """What is said by fields that say something; a v1 client in Java writes a space
    and a plus alike.
    """
    said = {(one.path, text(one.value)) for one in leaves({**fields, "hash": ""}) if text(one.value)}
    plus = " " if version == "v1" else "+"
    return frozenset((path, value.replace("+", plus)) for path, value in said)


def tokens(string: str) -> Iterator[list[Token]]:
    """Every way to cut a v2 string into names and values."""
    pieces = string.removesuffix(";").split(";")
    for size in range(len(pieces)):
        for cuts in combinations(range(1, len(pieces)), size):
            ends = [0, *cuts, len(pieces)]
            parts = [";".join(pieces[start:end]) for start, end in pairwise(ends)]
            if all("=" in part for part in parts):
                yield [(part.partition("=")[0], part.partition("=")[2]) for part in parts]


def nestings(found: list[Token]) -> Iterator[Fields]:
    """Those tokens beside one another, or a run of them within a container,
    or two runs within two.
    """
    yield dict(found)
    spans = [(start, end) for start in range(len(found)) for end in range(start + 1, len(found) + 1)]
    for start, end in spans:
        for container in ("shipping_address", "attachments", "d"):
            yield {**dict(found[:start]), container: dict(found[start:end]), **dict(found[end:])}
    for first, second in combinations(spans, 2):
        if first[1] <= second[0]:
            yield {
                **dict(found[: first[0]]),
                "attachments": dict(found[slice(*first)]),
                **dict(found[first[1] : second[0]]),
                "shipping_address": dict(found[slice(*second)]),
                **dict(found[second[1] :]),
            }


def could_be(fields: Fields, string: str) -> bool:
    """Whether a client that sorts in one of the two ways would have written that string."""
    return string in (flat(fields, str), flat(fields, str.lower))


def flat(fields: Fields, sorting: Callable[[str], str]) -> str:
    return "".join(
        flat(value, sorting) if isinstance(value, dict) else f"{name}={value};"
        for name, value in sorted(fields.items(), key=lambda field: (not field[0].isdigit(), sorting(field[0])))
    )


def listed(fields: Fields) -> Fields:
    """Items that are named by their places are a list."""
    return {
        name: [inner for _, inner in items(value)]
        if isinstance(value, dict) and [part for part, _ in items(value)] == [str(at) for at in range(len(value))]
        else value
        for name, value in fields.items()
    }


def accepted(fields: Fields, given_hash: str, version: Version) -> bool:
    try:
        return bool(verify(fields, given_hash, KEY, version))
    except MalformedForm:
        return False


@settings(max_examples=at_length(30, 8), deadline=None, suppress_health_check=SLOW)
@given(signed=requests("v2"))
@example(signed={**FORM, "sign_version": "v2", "a": "1", "c": "2;b=3"})
@example(signed={**FORM, "sign_version": "v2", "m": "1;q=2", "note": "3"})
@example(signed={**DELIVERY, "sign_version": "v2", "attachments": ["x", "y"]})
@example(signed={**FORM, "sign_version": "v2", "shipping_address": {"phone": "1"}})
@example(signed={**FORM, "sign_version": "v2", "shipping_address": {"zip": "1"}, "phone": "2"})
def test_a_version_2_hash_is_accepted_for_one_reading_only(signed: Fields) -> None:
    string = canonical_string(signed, "v2")
    assume(string.count(";") <= 8)
    try:
        given_hash = sign(signed, KEY, "v2")
    except MalformedForm:
        # The shop's own library refuses; a shop without it shows this hash all the same.
        given_hash = forced(string)
    found = {
        reading(listed(other), "v2")
        for cut in tokens(string)
        for other in nestings(cut)
        if could_be(other, string) and accepted(listed(other), given_hash, "v2")
    }
    if accepted(signed, given_hash, "v2"):
        found.add(reading(signed, "v2"))
    assert len(found) <= 1, found


def forced(string: str) -> str:
    """The hash of a string, by a program that has no guard."""
    return hmac.new(KEY.encode(), string.encode(), sha256).hexdigest()


def spellings(string: str) -> Iterator[Fields]:
    """Fields that a customer may post for a v1 string:
    neighbours joined into one name or one value, raw or encoded.
    """
    pieces = string.split("&")
    for start in range(len(pieces)):
        for end in range(start + 1, min(start + 4, len(pieces)) + 1):
            run = "&".join(pieces[start:end])
            rest = [piece.partition("=") for piece in pieces[:start] + pieces[end:]]
            for at, sign_ in enumerate(run):
                if sign_ == "=":
                    for name in (run[:at], unquote_plus(run[:at])):
                        for value in (run[at + 1 :], unquote_plus(run[at + 1 :])):
                            yield {**{unquote_plus(key): unquote_plus(one) for key, _, one in rest}, name: value}


@settings(max_examples=at_length(30, 8), deadline=None, suppress_health_check=SLOW)
@given(signed=requests("v1"))
@example(signed={**FORM, "sign_version": "v1", "recurring_trial_amount": "30.00", "recurring_trial_period": "1m"})
def test_a_version_1_hash_is_accepted_for_one_reading_only(signed: Fields) -> None:
    string = canonical_string(signed, "v1")
    given_hash = sign(signed, KEY, "v1")
    meant = reading(parse_form(string.encode()), "v1")
    for other in spellings(string):
        for posted in (other, nested(other)):
            if posted is not None and accepted(posted, given_hash, "v1"):
                assert reading(posted, "v1") == meant, posted


def nested(flat: Fields) -> Fields | None:
    """The same as a form with bracket names would be read, if it can be."""
    try:
        return parse_form(
            "&".join(f"{quote_plus(name)}={quote_plus(str(value))}" for name, value in flat.items()).encode()
        )
    except MalformedForm:
        return None


def test_all_that_the_doors_know_is_a_signed_field() -> None:
    assert {"api_key", "public_key", "status", "carrier_tracking_url", "city", "recurring_period"} <= SIGNED_FIELDS
    assert not any(is_nested(name) for name in SIGNED_FIELDS)
