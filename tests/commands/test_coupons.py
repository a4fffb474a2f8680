from __future__ import annotations

from typing import Any

import pytest


async def test_a_coupon_is_made_once_listed_and_switched_off(paydesk: Any, account: dict[str, Any]) -> None:
    words = ("coupon", "add", account["id"], "spring", "--percent", "12.5", "--periods", 3, "--sku", "club")
    first, second = [(await paydesk(*words, "--until", "2099-12-31", "--json")).result for _ in range(2)]
    assert first == second
    assert (first["code"], first["percent"], first["periods"], first["sku_ids"]) == ("SPRING", 12.5, 3, ["club"])
    assert (await paydesk("coupon", "list", account["id"], "--json")).result == [first]
    assert (await paydesk("coupon", "list", account["id"], "--live", "--json")).result == []
    for _ in range(2):
        off = (await paydesk("coupon", "switch-off", account["id"], first["id"], "--json")).result
        assert off == {**first, "active": False}
    row = (await paydesk("coupon", "list", account["id"])).out.splitlines()[1]
    assert row.split()[:5] == [str(first["id"]), "SPRING", "12.50", "%", "3"]
    assert row.rstrip().endswith("off")


async def test_people_read_what_was_made(paydesk: Any, account: dict[str, Any]) -> None:
    said = await paydesk("coupon", "add", account["id"], "five", "--amount", "5", "--currency", "eur")
    assert "(FIVE, 5.00 EUR off) can be used" in said.out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("add", "{id}", "spring"), "give either percent or amount"),
        (("add", "{id}", "a b", "--percent", "5"), "letters from A to Z"),
        (("add", "{id}", "five", "--amount", "5"), "currency is missing"),
        (("switch-off", "{id}", "99999999"), "there is no coupon"),
        (("list", "99999999"), "there is no merchant"),
    ],
)
async def test_what_can_not_be_is_said(paydesk: Any, account: dict[str, Any], words: tuple[str, ...], why: str) -> None:
    said = await paydesk("coupon", *(word.replace("{id}", str(account["id"])) for word in words))
    assert (said.status, said.out) == (1, "")
    assert why in said.err


async def test_another_coupon_of_its_code_is_refused(paydesk: Any, account: dict[str, Any]) -> None:
    await paydesk("coupon", "add", account["id"], "taken", "--percent", "5")
    said = await paydesk("coupon", "add", account["id"], "TAKEN", "--percent", "6")
    assert said.status == 1
    assert "take another code" in said.err
