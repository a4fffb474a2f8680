"""Rules that choose an account, in the console: typed, tried on an order, and taken away again."""

from __future__ import annotations

import pytest
from tests.web.account.conftest import Visitor, text_of
from tests.web.operator.test_acquirers import operator

from paydesk.database.pool import Database
from paydesk.domain.acquirers.routing import list_rules

__all__ = ["operator"]

NEW, REMOVE, TRY = "/operator/rules/new", "/operator/rules/remove", "/operator/rules/try"


async def test_a_rule_is_added_tried_and_removed_with_a_code_each_time(
    operator: tuple[Visitor, list[str]], database: Database
) -> None:
    visitor, codes = operator
    written = "select count(*) from audit_entry where action = 'acquirer_changed' and subject = 'simulator'"
    before = await database.fetchval(written)
    typed = {"account": "simulator", "currency": "chf", "country": "ch", "least": "20", "share": "100"}
    assert (await visitor.send(NEW, **typed, code="000000")).status_code == 400
    assert await list_rules(database) == []
    assert (await visitor.send(NEW, **typed, code=codes[0])).status_code == 303
    (rule,) = await list_rules(database)
    assert (rule.account, rule.currency, rule.country, str(rule.least)) == ("simulator", "CHF", "CH", "20.0000")
    asked = f"{TRY}?merchant={visitor.merchant_path.rsplit('/', 1)[1]}&side=test&currency=CHF&country=CH&order=A-1"
    fits = text_of(await visitor.see(f"{asked}&amount=30"))
    assert f"rule {rule.id}" in fits
    assert "it fits" in fits
    assert "the amount is below 20" in text_of(await visitor.see(f"{asked}&amount=10"))
    assert (await visitor.send(REMOVE, rule=str(rule.id), code="000000")).status_code == 400
    assert (await visitor.send(REMOVE, rule=str(rule.id), code=codes[1])).status_code == 303
    assert await list_rules(database) == []
    assert await database.fetchval(written) - before == 2


@pytest.mark.parametrize(
    ("field", "text"),
    [
        *(("least", "much"), ("share", "0"), ("country", "C1"), ("currency", "XXQ"), ("merchant", "x")),
        *(
            ("country", "AUT"),
            ("currency", "USDT"),
            ("least", "1" + "0" * 19 + ".5"),
            ("merchant", "1" + " " * 19 + "2"),
        ),
    ],
)
async def test_what_can_not_be_a_rule_is_said_at_its_field(
    operator: tuple[Visitor, list[str]], database: Database, field: str, text: str
) -> None:
    visitor, codes = operator
    typed = {"account": "simulator", "currency": "USD", field: text, "code": codes[0]}
    refused = await visitor.send(NEW, **typed)
    assert refused.status_code == 400
    assert f'id="e-{field}"' in refused.text
    assert await list_rules(database) == []


async def test_a_long_order_is_tried_whole(operator: tuple[Visitor, list[str]]) -> None:
    visitor, codes = operator
    assert (await visitor.send(NEW, account="simulator", share="50", code=codes[0])).status_code == 303
    asked = f"{TRY}?merchant={visitor.merchant_path.rsplit('/', 1)[1]}&side=test&currency=USD&order={'x' * 240}"
    tried = {"it fits" in text_of(await visitor.see(f"{asked}{number}")) for number in range(20)}
    assert tried == {True, False}, "orders that begin alike are told apart"


async def test_an_order_of_nobody_is_tried_at_no_account(operator: tuple[Visitor, list[str]]) -> None:
    visitor, _ = operator
    refused = await visitor.web.get(f"{TRY}?merchant=999999999&currency=USD")
    assert refused.status_code == 400
