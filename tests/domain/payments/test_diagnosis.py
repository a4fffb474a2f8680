from __future__ import annotations

import html
from typing import Any
from urllib.parse import quote_plus

import pytest

from paydesk.domain.payments import diagnosis
from paydesk.domain.payments.diagnosis import diagnose
from paydesk_client.signature import Version, sign, verify

KEY = "9c4d4efcfe74317c5df7d564cfe9565t"
FORM: dict[str, Any] = {
    "amount": "5.00",
    "api_key": "95b682bafc8837b1e80e5fe940cb5731",
    "currency": "EUR",
    "description": "Golden Ticket",
    "merchant_order_id": "5d00c568c5b2b",
    "success_url": "https://shop.example/thanks",
}


def suspect(posted: dict[str, Any], hashed: dict[str, Any], version: Version = "v1", key: str = KEY) -> str:
    """What is suspected when `hashed` was hashed and `posted` was posted."""
    found = diagnose(posted, sign(hashed, key, version), KEY, version)
    assert KEY not in found.hashed + found.suspect
    return found.suspect


@pytest.mark.parametrize(
    ("posted", "hashed", "name", "why"),
    [
        ({"description": "Golden Ticket "}, {}, "description", "trimmed"),
        ({"description": " Golden Ticket"}, {"description": "Golden Ticket"}, "description", "trimmed"),
        ({"description": "A & B"}, {"description": html.escape("A & B")}, "description", "HTML"),
        ({"description": html.escape("A & B")}, {"description": "A & B"}, "description", "HTML"),
        ({"description": quote_plus("A/B")}, {"description": "A/B"}, "description", "URL-encoded"),
        ({"description": "A\r\nB"}, {"description": "A\nB"}, "description", "line breaks"),
        ({"amount": "5.00"}, {"amount": "5"}, "amount", "trailing zeros"),
        ({"amount": "5"}, {"amount": "5.00"}, "amount", "trailing zeros"),
        ({"amount": "5.00"}, {"amount": "5.0"}, "amount", "trailing zero"),
        ({"currency": "EUR"}, {"currency": "eur"}, "currency", "case"),
        ({"module_source": "plugin"}, {}, "module_source", "added after"),
        ({"email": "a@b.example", "sign_version": "v1"}, {"email": "a@b.example"}, "sign_version", "before"),
    ],
)
def test_each_common_mistake_is_named(posted: dict[str, str], hashed: dict[str, str], name: str, why: str) -> None:
    found = suspect(FORM | posted, FORM | hashed)
    assert name in found
    assert why in found


@pytest.mark.parametrize(("asked", "used"), [("v1", "v2"), ("v2", "v1")])
def test_the_rules_of_the_other_version_are_recognised(asked: Version, used: Version) -> None:
    form = FORM | {"sign_version": asked}
    found = diagnose(form, sign(form, KEY, used), KEY, asked)
    assert f"by the rules of {used}" in found.suspect


def test_the_public_key_in_place_of_the_private_one_is_recognised() -> None:
    assert "public key instead" in suspect(FORM, FORM, key=FORM["api_key"])


def test_a_changed_value_and_another_accounts_key_look_alike_so_both_are_named() -> None:
    for changed, key in ((FORM | {"amount": "4.00"}, KEY), (FORM, "another private key")):
        found = suspect(changed, FORM, key=key)
        assert found.startswith("a value that was changed after signing")
        assert "or a private key that is of another account" in found


@pytest.mark.parametrize("written", [f"{KEY}\n", f" {KEY}", f"{KEY} "])
def test_a_space_beside_the_key_is_recognised(written: str) -> None:
    assert "a space or a line break beside it" in suspect(FORM, FORM, key=written)


def test_the_key_of_another_pair_of_the_account_is_recognised_and_not_shown() -> None:
    others = [("public-new", "private-new"), (FORM["api_key"], KEY), ("public-old", "private-old")]
    found = diagnose(FORM, sign(FORM, "private-old", "v1"), KEY, "v1", others)
    assert "another pair of this account, whose public key is public-old" in found.suspect
    assert "private-" not in found.hashed + found.suspect


def test_a_private_key_that_was_posted_is_masked_in_what_was_hashed() -> None:
    posted = FORM | {"secret": KEY, "old": "private-old"}
    found = diagnose(posted, "0" * 64, KEY, "v1", [("public-old", "private-old")])
    assert KEY not in found.hashed
    assert "private-old" not in found.hashed


def test_a_field_that_is_easily_encoded_in_two_ways_is_suspected() -> None:
    assert suspect(FORM | {"description": "Zoë"}, FORM | {"description": "Zo?"}).startswith('"description"')


def test_what_is_no_sha256_is_recognised() -> None:
    assert "expected 64 hexadecimal digits" in diagnose(FORM, "d41d8cd98f00b204e9800998ecf8427e", KEY, "v1").suspect


def test_the_hashed_string_is_the_canonical_one() -> None:
    assert diagnose({**FORM, "hash": "x", "b": "~ é"}, "x", KEY, "v1").hashed == (
        "amount=5.00&api_key=95b682bafc8837b1e80e5fe940cb5731&b=%7E+%C3%A9&currency=EUR&description=Golden+Ticket"
        "&merchant_order_id=5d00c568c5b2b&success_url=https%3A%2F%2Fshop.example%2Fthanks"
    )


@pytest.mark.parametrize("fields", [{f"f{n}": "~+é" * 100 for n in range(199)}, {f"f{n}": "" for n in range(199)}])
def test_a_strangers_huge_form_is_not_worth_much_work(fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    honest = verify

    def counting(*asked: Any) -> Any:
        tried.append(asked)
        return honest(*asked)

    monkeypatch.setattr(diagnosis, "verify", counting)
    diagnose(FORM | fields, "0" * 64, KEY, "v1")
    assert len(tried) < 200, "not even one guess per field"
    assert tried[-1][-1].left == 0, "what all guesses together may cost is used up"
    tried.clear()
    diagnose(FORM | {f"f{n}": "plain" for n in range(8)}, "0" * 64, KEY, "v1")
    assert len(tried) > 40, "an honest form gets all that is known"
