"""City and postal code: asked where the shop knows one, for the bank's address check,
and never kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.markup import Markup
from tests.shopfront import TYPED, open_page

from paydesk.adapters.acquirers.interface import Outcome
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import SimulatedAcquirer

SignedForm = Callable[..., dict[str, Any]]


async def shown(web: httpx.AsyncClient, form: dict[str, Any]) -> dict[str, str]:
    return Markup((await web.get(await open_page(web, form))).text).inputs()


async def test_what_the_shop_knows_is_filled_in(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    fields = await shown(web, signed_form(city="London\n SW", zip="SW1A 1AA", first_name="Ada", email="a@example.com"))
    assert (fields["city"], fields["zip"]) == ("London  SW", "SW1A 1AA")
    assert (fields["holder"], fields["email"]) == ("Ada", "a@example.com")
    one = await shown(web, signed_form(zip="10115"))
    assert (one["city"], one["zip"]) == ("", "10115")


@pytest.mark.parametrize(
    "fields",
    [{}, {"city": "", "zip": ""}, {"city": ["a", "b"]}, {"zip": {"a": "b"}}, {"city": "x" * 101}, {"zip": "\x07"}],
    ids=["none", "empty", "a list", "nested", "too long", "a control character"],
)
async def test_what_is_no_place_refuses_no_form_and_asks_nothing(
    web: httpx.AsyncClient, signed_form: SignedForm, fields: dict[str, Any]
) -> None:
    assert {"city", "zip"}.isdisjoint(await shown(web, signed_form(**fields)))


async def test_the_bank_gets_what_the_customer_made_of_it_and_it_is_shown_again(
    open_web: Any, signed_form: SignedForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[CardDetails] = []
    authorize = SimulatedAcquirer.authorize

    async def watched(self: SimulatedAcquirer, purchase: Purchase) -> Outcome:
        asked.append(purchase.card)
        return await authorize(self, purchase)

    monkeypatch.setattr(SimulatedAcquirer, "authorize", watched)
    web = await open_web()
    path = await open_page(web, signed_form(city="Berlin", zip="10115"))
    typed = TYPED | {"city": "Potsdam", "zip": "14467"}
    declined = await web.post(f"{path}/pay", data={**typed, "number": "4000000000000002"})
    assert declined.status_code == 402
    fields = Markup(declined.text).inputs()
    assert (fields["city"], fields["zip"]) == ("Potsdam", "14467")
    assert (await web.post(f"{path}/pay", data={**typed, "number": "4242424242424242", "city": ""})).status_code == 303
    assert [(card.city, card.postal_code) for card in asked] == [("Potsdam", "14467"), ("", "14467")]
    assert "Potsdam" not in repr(asked[0])
    unasked = await open_page(web, signed_form())
    await web.post(f"{unasked}/pay", data={**typed, "number": "4242424242424242"})
    assert (asked[-1].city, asked[-1].postal_code) == ("", ""), "the page did not ask"
