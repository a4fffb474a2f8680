"""Merchants as operators see them, suspension, and what merchants pay."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests import set_back
from tests.web.account.conftest import SignUp, Visitor, leads_to, text_of

from paydesk.database.pool import Database
from paydesk.domain.operations.missed_periods import Missed
from paydesk.web.operator import merchants

TERMS = {
    "rate": "2.9",
    "fixed": "0.25",
    "reserve_rate": "4",
    "chargeback_fee": "20",
    "settlement_days": "3",
    "reserve_days": "90",
}


def merchant_id_of(visitor: Visitor) -> int:
    return int(visitor.merchant_path.split("/")[2])


async def test_a_merchant_is_found_by_name_address_id_and_key(
    operator: Visitor, sign_up: SignUp, database: Database
) -> None:
    shop = await sign_up("Zebra Goods")
    merchant_id = merchant_id_of(shop)
    key = await database.fetchval("select public_key from merchant_key where merchant_id = $1", merchant_id)
    for text in ("zebra", shop.email[:20].upper(), str(merchant_id), key[:10]):
        shown = await operator.see(f"/operator/merchants?q={text}")
        assert f'href="/operator/merchants/{merchant_id}"' in shown.text, text
    for text in ("zebr%25", "_ebra", "9" * 30, "nobody has this"):
        shown = await operator.see(f"/operator/merchants?q={text}")
        assert shown.status_code == 200
        assert f'href="/operator/merchants/{merchant_id}"' not in shown.text, text


async def test_the_list_goes_on_where_a_page_ends(
    operator: Visitor, database: Database, monkeypatch: pytest.MonkeyPatch, sign_up: SignUp
) -> None:
    monkeypatch.setattr("paydesk.web.operator.merchants.ROWS", 2)
    made = [merchant_id_of(await sign_up(f"Shop {number}")) for number in range(3)]
    first = await operator.see("/operator/merchants")
    assert f"/operator/merchants/{made[2]}" in first.text
    assert f"/operator/merchants/{made[0]}" not in first.text
    assert f"before={made[1]}" in first.text
    assert f'"/operator/merchants/{made[0]}"' in (await operator.see(f"/operator/merchants?before={made[1]}")).text
    assert (await operator.see("/operator/merchants?before=x&standing=y")).status_code == 200


async def test_a_merchants_page_shows_no_secret(operator: Visitor, owner: Visitor, database: Database) -> None:
    merchant_id = merchant_id_of(owner)
    shown = await operator.see(f"/operator/merchants/{merchant_id}")
    key = await database.fetchrow("select * from merchant_key where merchant_id = $1", merchant_id)
    assert key["public_key"] in shown.text
    assert owner.email in shown.text
    assert "private" not in shown.text.lower()
    assert (await operator.see("/operator/merchants/900719925474099")).status_code == 404


async def test_a_suspension_is_told_in_the_account_and_lifted(
    operator: Visitor, owner: Visitor, database: Database
) -> None:
    merchant_id = merchant_id_of(owner)
    page = f"/operator/merchants/{merchant_id}"
    assert (await operator.send(page, f"{page}/suspend", reason=" ")).status_code == 400
    assert leads_to(await operator.send(page, f"{page}/suspend", reason="Goods don't arrive")) == page
    assert "Goods don't arrive" in text_of(await operator.see(page))
    assert "This account is suspended" in text_of(await owner.see(f"{owner.merchant_path}/payments"))
    assert "Goods don't arrive" in text_of(await owner.see(f"{owner.merchant_path}/settings/audit"))
    assert f"{merchant_id}" in (await operator.see("/operator/merchants?standing=suspended")).text
    assert leads_to(await operator.send(page, f"{page}/resume")) == page
    assert "This account is suspended" not in text_of(await owner.see(f"{owner.merchant_path}/payments"))
    actions = await database.fetch(
        "select action, operator from audit_entry where merchant_id = $1 and action like 'merchant_%' order by id desc",
        merchant_id,
    )
    assert [(row["action"], row["operator"]) for row in actions][:2] == [
        ("merchant_resumed", True),
        ("merchant_suspended", True),
    ]


async def test_suspending_and_terms_want_the_password_again(
    operator: Visitor, owner: Visitor, database: Database
) -> None:
    page = f"/operator/merchants/{merchant_id_of(owner)}"
    await set_back.password_long_ago(database, operator.email)
    for action, fields in (("suspend", {"reason": "x"}), ("terms", TERMS)):
        asked = await operator.send(page, f"{page}/{action}", **fields)
        assert asked.status_code == 403
        assert "Confirm it's you" in text_of(asked)
    assert not await database.fetchval("select suspended_at from merchant where id = $1", merchant_id_of(owner))


async def test_new_terms_hold_for_new_payments(operator: Visitor, owner: Visitor, database: Database) -> None:
    merchant_id = merchant_id_of(owner)
    page = f"/operator/merchants/{merchant_id}"
    assert leads_to(await operator.send(page, f"{page}/terms", **TERMS, fees_returned="1")) == page
    shown = (await operator.see(page)).text
    for value in TERMS.values():
        assert f'value="{value}"' in shown
    row = await database.fetchrow(
        "select f.*, m.settlement_days from fee_plan f join merchant m on m.id = f.merchant_id where m.id = $1",
        merchant_id,
    )
    assert (str(row["rate"]), row["fees_returned"], row["settlement_days"]) == ("0.029000", True, 3)
    plans = text_of(await operator.see("/operator/plans"))
    assert "2.9% + 0.25" in plans
    details = await database.fetchval(
        "select details::text from audit_entry where merchant_id = $1 and action = 'fee_plan_changed'", merchant_id
    )
    assert "0.030000 → 0.029" in details


async def test_amounts_of_a_currency_are_set_shown_and_forgotten(
    operator: Visitor, owner: Visitor, database: Database
) -> None:
    page = f"/operator/merchants/{merchant_id_of(owner)}"
    assert "1,500" in text_of(await operator.see(page)), "by the rule, in yen"
    amounts = {"currency": "jpy", "own_fixed": "25", "own_chargeback_fee": "1800"}
    assert leads_to(await operator.send(page, f"{page}/fees", **amounts)) == page
    shown = text_of(await operator.see(page))
    assert "1,800" in shown
    assert "Follow the rule in JPY" in shown
    row = await database.fetchrow("select * from fees_in($1, 'JPY')", merchant_id_of(owner))
    assert (row["fixed"], row["chargeback_fee"]) == (25, 1800)
    assert leads_to(await operator.send(page, f"{page}/fees", currency="JPY", usual="1")) == page
    assert "Follow the rule in JPY" not in text_of(await operator.see(page))


@pytest.mark.parametrize(
    ("name", "value"),
    [("currency", "YEN"), ("currency", ""), ("currency", "JPYX"), ("own_fixed", "x"), ("own_chargeback_fee", "-1")],
)
async def test_wrong_amounts_are_told_beside_their_field(
    operator: Visitor, owner: Visitor, database: Database, name: str, value: str
) -> None:
    page = f"/operator/merchants/{merchant_id_of(owner)}"
    amounts = {"currency": "JPY", "own_fixed": "25", "own_chargeback_fee": "1800", name: value}
    answer = await operator.send(page, f"{page}/fees", **amounts)
    assert answer.status_code == 400
    assert 'aria-invalid="true"' in answer.text
    assert not await database.fetchval("select count(*) from fee_amount where merchant_id = $1", merchant_id_of(owner))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rate", "100"),
        ("rate", "-1"),
        ("rate", "NaN"),
        ("rate", "1e99"),
        ("rate", "2.99999"),
        ("fixed", ""),
        ("fixed", "0.00001"),
        ("chargeback_fee", "1001"),
        ("reserve_rate", "Infinity"),
        ("settlement_days", "1.5"),
        ("settlement_days", "366"),
        ("reserve_days", "-1"),
        ("reserve_days", "٣"),
    ],
)
async def test_terms_that_make_no_sense_are_named_at_their_field(
    operator: Visitor, owner: Visitor, field: str, value: str
) -> None:
    page = f"/operator/merchants/{merchant_id_of(owner)}"
    answer = await operator.send(page, f"{page}/terms", **{**TERMS, field: value})
    assert answer.status_code == 400
    assert f'id="e-{field}"' in answer.text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"fees_returned": "0"}, '"0" is none of the choices'),
        ({"reserve_rates": "9"}, 'There is no field "reserve_rates"'),
        ({"fixed": ["0.25", "9"]}, 'The field "fixed" was sent twice'),
    ],
)
async def test_terms_are_what_the_form_says_or_nothing(
    operator: Visitor, owner: Visitor, database: Database, wrong: dict[str, Any], said: str
) -> None:
    merchant_id = merchant_id_of(owner)
    page = f"/operator/merchants/{merchant_id}"
    answer = await operator.send(page, f"{page}/terms", **TERMS | wrong)
    assert answer.status_code == 400
    assert said in text_of(answer)
    assert ('id="e-fees_returned"' in answer.text) == ("fees_returned" in wrong)
    assert not await database.fetchval(
        "select count(*) from audit_entry where merchant_id = $1 and action = 'fee_plan_changed'", merchant_id
    )


async def test_amounts_go_back_to_the_rule_by_no_other_word(operator: Visitor, owner: Visitor) -> None:
    page = f"/operator/merchants/{merchant_id_of(owner)}"
    amounts = {"currency": "JPY", "own_fixed": "25", "own_chargeback_fee": "1800"}
    assert leads_to(await operator.send(page, f"{page}/fees", **amounts)) == page
    refused = await operator.send(page, f"{page}/fees", currency="JPY", usual="0")
    assert refused.status_code == 400
    assert '"0" is none of the choices' in text_of(refused)
    assert "Follow the rule in JPY" in text_of(await operator.see(page))


async def test_a_suspension_is_not_lifted_by_a_word_that_says_nothing_of_what_was_missed(
    operator: Visitor, owner: Visitor, database: Database
) -> None:
    page = f"/operator/merchants/{merchant_id_of(owner)}"
    await operator.send(page, f"{page}/suspend", reason="Goods don't arrive")
    for typed in ({"missed": "every"}, {"missing": "all"}):
        assert (await operator.send(page, f"{page}/resume", **typed)).status_code == 400
    assert "Lift the suspension" in text_of(await operator.see(page))


async def test_lifting_a_suspension_shows_what_was_missed_and_charges_all_if_asked(
    operator: Visitor, owner: Visitor, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def three_months(*_: object, **__: object) -> list[Missed]:
        return [Missed("USD", 2, Decimal(20), 6, Decimal(60))]

    monkeypatch.setattr(merchants, "missed_periods", three_months)
    merchant_id = merchant_id_of(owner)
    page = f"/operator/merchants/{merchant_id}"
    await operator.send(page, f"{page}/suspend", reason="Goods don't arrive")
    shown = text_of(await operator.see(page))
    assert "USD 2 20.00 USD 6 60.00 USD" in " ".join(shown.split())
    await operator.send(page, f"{page}/resume", missed="all")
    assert await database.fetchval("select charge_missed_until from merchant where id = $1", merchant_id) is not None
