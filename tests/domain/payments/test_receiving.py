"""A form is refused only where nobody who serves its shop can take what it asks for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, Final

import pytest
from tests.shopfront import MONTHLY

from paydesk.adapters.acquirers.hosted_pages import Capabilities
from paydesk.core.errors import Conflict
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.receiving import refuse_beyond_acquirers


def acquirer(name: str, *, cards: bool = False, days: int = 0, stored: bool = True) -> Any:
    can = Capabilities(cards=cards, pages=not cards, stored=stored)
    return SimpleNamespace(name=name, capabilities=can, hold_period=timedelta(days=days))


def asks(amount: str = "10.00", currency: str = "USD", price: str = "") -> Any:
    terms = replace(MONTHLY, currency=currency, price=Decimal(price)) if price else None
    return SimpleNamespace(amount=Decimal(amount), currency=currency, terms=terms)


LIVE: Final = Shop(1, live=True)
GOODS: tuple[Any, Any] = asks(), SimpleNamespace(shipped_goods=True)
CLUB: tuple[Any, Any] = asks(price="10.00"), SimpleNamespace(shipped_goods=False)


def test_goods_are_shipped_where_one_of_them_holds_money() -> None:
    refuse_beyond_acquirers(LIVE, *GOODS, [acquirer("added", days=7), acquirer("mollie")])
    refuse_beyond_acquirers(LIVE, *GOODS, [acquirer("added"), acquirer("stripe", cards=True)])
    refuse_beyond_acquirers(LIVE, *GOODS, [])
    with pytest.raises(Conflict, match="mollie's own page here, which holds no money"):
        refuse_beyond_acquirers(LIVE, *GOODS, [acquirer("added"), acquirer("mollie")])


def test_a_subscription_begins_where_one_of_them_keeps_what_is_charged() -> None:
    refuse_beyond_acquirers(LIVE, *CLUB, [acquirer("added"), acquirer("bank", stored=False)])
    with pytest.raises(Conflict, match="bank's own page here, which keeps nothing"):
        refuse_beyond_acquirers(LIVE, *CLUB, [acquirer("bank", stored=False)])


@pytest.mark.parametrize(("amount", "price"), [("12.345", ""), ("0", "12.345")])
def test_a_third_decimal_of_a_dinar_is_refused_before_somebody_tries_to_pay_it(amount: str, price: str) -> None:
    with pytest.raises(Conflict, match=r"12\.345 KWD, which has too many decimals; ask for 12\.35"):
        refuse_beyond_acquirers(LIVE, asks(amount, "KWD", price), CLUB[1], [acquirer("stripe", cards=True)])


def test_a_dinars_third_decimal_may_be_a_zero() -> None:
    refuse_beyond_acquirers(LIVE, asks("12.340", "KWD", "12.340"), CLUB[1], [acquirer("stripe", cards=True)])
