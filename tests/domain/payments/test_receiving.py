"""A form is refused only where nobody who serves its shop can take what it asks for."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from paydesk.adapters.acquirers.hosted_pages import Capabilities
from paydesk.core.errors import Conflict
from paydesk.domain.payments.receiving import refuse_beyond_pages


def acquirer(name: str, *, cards: bool = False, days: int = 0, stored: bool = True) -> Any:
    can = Capabilities(cards=cards, pages=not cards, stored=stored)
    return SimpleNamespace(name=name, capabilities=can, hold_period=timedelta(days=days))


GOODS: tuple[Any, Any] = SimpleNamespace(terms=None), SimpleNamespace(shipped_goods=True)
CLUB: tuple[Any, Any] = SimpleNamespace(terms="monthly"), SimpleNamespace(shipped_goods=False)


def test_goods_are_shipped_where_one_of_them_holds_money() -> None:
    refuse_beyond_pages(*GOODS, [acquirer("added", days=7), acquirer("mollie")])
    refuse_beyond_pages(*GOODS, [acquirer("added"), acquirer("stripe", cards=True)])
    refuse_beyond_pages(*GOODS, [])
    with pytest.raises(Conflict, match="mollie's own page here, which holds no money"):
        refuse_beyond_pages(*GOODS, [acquirer("added"), acquirer("mollie")])


def test_a_subscription_begins_where_one_of_them_keeps_what_is_charged() -> None:
    refuse_beyond_pages(*CLUB, [acquirer("added"), acquirer("bank", stored=False)])
    with pytest.raises(Conflict, match="bank's own page here, which keeps nothing"):
        refuse_beyond_pages(*CLUB, [acquirer("bank", stored=False)])
