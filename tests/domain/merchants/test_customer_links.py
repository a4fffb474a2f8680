"""Customers' links are made from a row, the secret key and the row's seed;
they open that row and rest nowhere.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.errors import NotFound
from paydesk.core.paging import LARGEST_ID
from paydesk.domain.merchants.customer_links import Link, LinkTo, open_link
from paydesk.domain.merchants.shop import Shop

VAULT = Vault.from_settings(generate_key_setting(), generate_secret())
SEED = secrets.token_hex(16)
ONE = Link(LinkTo.PORTAL, Shop(7, live=False), 13330, SEED)


@given(st.integers(1, 2**52 - 1), st.booleans(), st.integers(1, LARGEST_ID), st.sampled_from(LinkTo))
def test_a_link_opens_the_row_that_it_was_made_for(merchant_id: int, live: bool, row_id: int, to: LinkTo) -> None:
    link = Link(to, Shop(merchant_id, live), row_id, SEED)
    opened = open_link(VAULT, to, link.token(VAULT))
    assert (opened.shop, opened.row_id) == (link.shop, row_id)
    assert opened.fits(SEED)
    assert not opened.fits(secrets.token_hex(16))
    assert not opened.fits(None)
    assert not opened.fits("")


def test_it_says_which_side_it_is_of_and_hides_the_id() -> None:
    tokens = [replace(ONE, row_id=number).token(VAULT) for number in range(1, 200)]
    assert all(token.startswith("t7-") and len(token) == 3 + 48 for token in tokens)
    hidden = [int(token[-16:], 16) for token in tokens]
    assert len(set(hidden)) == len(tokens)
    assert all(abs(one - other) > 1000 for one, other in pairwise(hidden))


@pytest.mark.parametrize(
    "other",
    [
        replace(ONE, row_id=13338),
        replace(ONE, shop=Shop(8, live=False)),
        replace(ONE, shop=Shop(7, live=True)),
        replace(ONE, to=LinkTo.CHECKOUT),
        replace(ONE, seed=secrets.token_hex(16)),
    ],
)
def test_all_that_it_names_is_proven(other: Link) -> None:
    """With the secret part of another's link nothing opens, whatever is written before
    and after it.
    """
    mine, theirs = ONE.token(VAULT), other.token(VAULT)
    assert mine != theirs
    for forged in (theirs[:-48] + mine[-48:], theirs[:-16] + mine[-16:], mine[:-16] + theirs[-16:]):
        if forged == mine:
            continue
        try:
            opened = open_link(VAULT, LinkTo.PORTAL, forged)
        except NotFound:
            continue
        assert not (opened.row_id == ONE.row_id and opened.shop == ONE.shop and opened.fits(SEED)), forged


def test_neither_a_dump_nor_the_secret_key_alone_makes_one() -> None:
    token = ONE.token(VAULT)
    with_dump_alone = Vault.from_settings(generate_key_setting(), generate_secret())
    assert ONE.token(with_dump_alone) != token
    assert replace(ONE, seed="").token(VAULT) != token
    assert "seed" not in repr(ONE)
    assert SEED not in repr(ONE)
    assert token not in repr(open_link(VAULT, LinkTo.PORTAL, token))


def test_it_stays_the_same_when_the_vaults_keys_change(deployment_keys: dict[str, str]) -> None:
    old = Vault.from_settings(**deployment_keys)
    new = Vault.from_settings(generate_key_setting(), deployment_keys["secret_key"])
    assert ONE.token(old) == ONE.token(new)


NOISE: list[Callable[[str], str]] = [
    lambda token: "",
    lambda token: token[:-1],
    lambda token: token + "0",
    lambda token: token.upper(),
    lambda token: "x" + token[1:],
    lambda token: token.replace("-", ""),
    lambda token: token + "\n",
    lambda token: "é" * 51,
    lambda token: "t" + "f" * 14 + "-" + "0" * 48,
]


@pytest.mark.parametrize("change", NOISE)
def test_what_is_no_link_is_not_found(change: Callable[[str], str]) -> None:
    with pytest.raises(NotFound):
        open_link(VAULT, LinkTo.PORTAL, change(ONE.token(VAULT)))


@given(st.binary(min_size=24, max_size=24))
def test_whatever_is_guessed_names_a_row_that_can_be_asked_for_or_none(noise: bytes) -> None:
    try:
        opened: Any = open_link(VAULT, LinkTo.CHECKOUT, f"t7-{noise.hex()}")
    except NotFound:
        return
    assert 0 < opened.row_id <= LARGEST_ID
    assert not opened.fits(SEED)
