from __future__ import annotations

from typing import Any


async def test_a_merchants_amounts_are_set_shown_and_forgotten(paydesk: Any, account: dict[str, Any]) -> None:
    merchant = account["id"]
    said = await paydesk("fees", "set", merchant, "JPY", "--fixed", "25", "--chargeback-fee", "1800", "--json")
    assert said.status == 0, said.err
    own = next(one for one in said.result if one["own"])
    assert (own["currency"], float(own["fixed"]), float(own["chargeback_fee"])) == ("JPY", 25, 1800)
    shown = await paydesk("fees", "show", merchant)
    assert "1800" in shown.out
    assert "hand" in shown.out
    again = await paydesk("fees", "usual", merchant, "JPY", "--json")
    assert not any(one["own"] for one in again.result)
    assert {one["currency"] for one in again.result} == {"EUR", "GBP", "JPY", "USD"}


async def test_nonsense_is_one_line(paydesk: Any, account: dict[str, Any]) -> None:
    for options, words in (
        (("YEN", "--fixed", "1", "--chargeback-fee", "1"), "not an ISO 4217 currency"),
        (("JPY", "--fixed", "x", "--chargeback-fee", "1"), "is not a number"),
        (("USD", "--fixed", "1", "--chargeback-fee", "5000"), "from 0 to 1000"),
    ):
        said = await paydesk("fees", "set", account["id"], *options)
        assert (said.status, said.out, said.err.count("\n")) == (1, "", 1)
        assert words in said.err
