"""The guard against card testing: counted before the bank is asked, whoever tries,
and however many at once.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from stdnum import luhn
from tests import set_back
from tests.banks import HeardBank
from tests.shopfront import payer

from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import card_guard
from paydesk.domain.payments.card_guard import Limits, counts_of, networks_of
from paydesk.domain.payments.challenges import settle_challenge
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.paying import pay
from paydesk.domain.payments.results import ConfirmWithBank, Paid, Refused, Result
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

VISA, DECLINED, WRONG_CVC, ASKS = "4242424242424242", "4000000000000002", "4000000000000127", "4000000000003220"
STOPPED = Refused("too_many_attempts")


@pytest.fixture
def asked(till: Any) -> HeardBank:
    return HeardBank(till.desk.acquirers["simulator"])


def with_limits(till: Any, asked: HeardBank, **limits: int) -> Any:
    """The till with limits of its own, live or test; what is not named is far away."""
    own = Limits(**{**dict.fromkeys((*Limits.__slots__,), 1000), **limits})
    desk = replace(till.desk, acquirers={"simulator": asked}, live_acquirer="simulator", limits=own, test_limits=own)
    return replace(till, desk=desk)


async def try_card(
    till: Any, number: str, address: str = "192.0.2.1", *, token: Link | None = None, cvc: str = "123"
) -> Result:
    """One try, with what is written down of it afterwards."""
    desk: Desk = till.desk
    result: Result = await till.pay(token or await till.order(), number, address=address, cvc=cvc)
    await desk.finish()
    return result


async def test_of_any_number_at_once_no_more_reach_the_bank_than_one_after_another(till: Any, asked: HeardBank) -> None:
    limited = with_limits(till, asked, declines_per_hour=5)
    tokens = [await limited.order() for _ in range(25)]
    results = await asyncio.gather(*(try_card(limited, DECLINED, token=token) for token in tokens))
    assert len(asked.purchases) == 5
    assert sorted(str(result.reason) for result in results if isinstance(result, Refused)) == (
        ["declined"] * 5 + ["too_many_attempts"] * 20
    )


async def test_who_pays_is_not_counted(till: Any, asked: HeardBank) -> None:
    limited = with_limits(till, asked, declines_per_hour=2, tries_per_card=2, wrong_cvcs_per_card=2)
    for _ in range(5):
        assert await try_card(limited, VISA) == Paid()


async def test_of_any_number_who_pay_at_once_none_stays_counted(
    till: Any, asked: HeardBank, database: Database
) -> None:
    tokens = [await till.order() for _ in range(15)]
    limited = with_limits(till, asked)
    assert await asyncio.gather(*(try_card(limited, VISA, token=token) for token in tokens)) == [Paid()] * 15
    counted = await database.fetch("select subject, tries from card_try where merchant_id = $1", till.shop.merchant_id)
    assert len(counted) == 3, "the address, the card and its code"
    assert {row["tries"] for row in counted} == {0}


async def test_tries_that_come_up_side_by_side_are_taken_back_together(
    till: Any, asked: HeardBank, database: Database, vault: Vault
) -> None:
    await try_card(with_limits(till, asked), DECLINED)
    counts = counts_of(vault, CardDetails(DECLINED, 12, 2040, "Ada"), "192.0.2.1", live=False, is_check=False)
    amends, said = card_guard.Amends(), asyncio.Queue[str]()
    async with database.acquire() as connection:
        connection.add_query_logger(lambda query: said.put_nowait(query.query))
        assert amends.owe(till.shop, counts)
        making = asyncio.create_task(amends.make(connection))
        await said.get()
        for _ in range(50):
            assert not amends.owe(till.shop, counts), "whoever made the first makes these, too"
        await making
    assert said.qsize() == 1
    assert amends.owe(till.shop, counts), "the next has to be made by somebody"


async def test_who_stops_waits_for_no_others(till: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_guard, "_MOMENT", 3600)
    assert await try_card(till, VISA) == Paid()


async def test_one_card_is_stopped_from_whatever_address(till: Any, asked: HeardBank) -> None:
    limited = with_limits(till, asked, tries_per_card=3)
    for host in range(3):
        assert await try_card(limited, DECLINED, f"192.0.2.{host}") == Refused("declined")
    assert await try_card(limited, DECLINED, "198.51.100.7") == STOPPED
    assert await try_card(limited, VISA, "198.51.100.7") == Paid(), "another card"


async def test_security_codes_of_a_card_can_not_be_guessed(till: Any, asked: HeardBank) -> None:
    limited = with_limits(till, asked, wrong_cvcs_per_card=3)
    for code in range(3):
        assert await try_card(limited, WRONG_CVC, f"192.0.2.{code}", cvc=f"00{code}") == Refused("wrong_cvc")
    assert await try_card(limited, WRONG_CVC, "198.51.100.7", cvc="004") == STOPPED
    for _ in range(5):
        assert await try_card(limited, DECLINED) == Refused("declined"), "another reason is no guess"


async def test_a_wrong_code_is_remembered_for_a_day(till: Any, asked: HeardBank, database: Database) -> None:
    limited = with_limits(till, asked, wrong_cvcs_per_card=1)
    assert await try_card(limited, WRONG_CVC) == Refused("wrong_cvc")
    await card_guard.forget_tries(database, now=utc_now() + timedelta(hours=23))
    assert await try_card(limited, WRONG_CVC) == STOPPED
    await card_guard.forget_tries(database, now=utc_now() + timedelta(hours=25))
    assert await try_card(limited, WRONG_CVC) == Refused("wrong_cvc")


def test_ipv6_is_counted_by_the_networks_that_one_customer_may_have() -> None:
    one, neighbour = networks_of("2001:db8:1:ff01::"), networks_of("2001:db8:1:ff02::")
    assert one == [("2001:db8:1:ff01::/64", 1), ("2001:db8:1:ff00::/56", 2), ("2001:db8:1::/48", 4)]
    assert one[1:] == neighbour[1:]
    assert networks_of("192.0.2.1") == [("192.0.2.1", 1)]
    assert networks_of("somewhere") == [("somewhere", 1)]


async def test_a_wide_network_gets_no_more_than_its_share(till: Any, asked: HeardBank) -> None:
    limited = with_limits(till, asked, declines_per_hour=2)
    for _ in range(2):
        assert await try_card(limited, DECLINED, "2001:db8:1:a00::") == Refused("declined")
    for _ in range(9):
        assert await try_card(limited, DECLINED, "2001:db8:1:a00::") == STOPPED, "and counted for nobody else"
    for number in (1, 2):
        assert await try_card(limited, DECLINED, f"2001:db8:1:a{number:02}::") == Refused("declined")
    assert await try_card(limited, DECLINED, "2001:db8:1:a03::") == STOPPED, "the /56"
    for number in range(4):
        assert await try_card(limited, DECLINED, f"2001:db8:1:b{number:02}::") == Refused("declined")
    assert await try_card(limited, DECLINED, "2001:db8:1:c00::") == STOPPED, "the /48"
    assert await try_card(limited, DECLINED, "2001:db8:2::") == Refused("declined")


def test_a_card_is_counted_under_a_vault_key_and_the_secret_key_tells_nothing() -> None:
    secret, card = generate_secret(), CardDetails(VISA, 12, 2040, "Ada Lovelace", "123")
    one, other = (Vault.from_settings(generate_key_setting(), secret) for _ in range(2))
    subjects = [
        {count.subject for count in counts_of(vault, card, "::1", live=True, is_check=True)} for vault in (one, other)
    ]
    assert not subjects[0] & subjects[1]
    assert len(subjects[0]) == 9
    assert not any(VISA in subject or "::1" in subject for subject in subjects[0])


async def test_everybody_is_asked_for_3ds_when_most_are_declined_then_the_merchant_pauses(
    till: Any, asked: HeardBank, database: Database
) -> None:
    limited = with_limits(till, asked, declines_before_challenge=4)
    for host in range(4):
        assert not (asked.purchases and asked.purchases[-1].authenticate)
        await try_card(limited, DECLINED, f"192.0.2.{host}")
    assert isinstance(await try_card(limited, VISA), ConfirmWithBank)
    assert asked.purchases[-1].authenticate
    await _declines_after(limited, count=4)
    assert await try_card(limited, VISA) == STOPPED
    reasons = await database.fetch(
        "select reason from alarm where kind = 'card_testing' and merchant_id = $1", till.shop.merchant_id
    )
    assert ["3-D Secure" in row["reason"] for row in reasons] == [True]
    await set_back.times(database, "card_guard", {}, paused_until=utc_now())
    assert isinstance(await try_card(limited, VISA), ConfirmWithBank), "goes on with 3-D Secure"


async def _declines_after(till: Any, *, count: int) -> None:
    """Declines of the minutes after 3-D Secure was first asked for."""
    later, database = utc_now() + timedelta(minutes=11), till.desk.database
    await set_back.times(database, "card_guard", {}, authenticate_until=later + timedelta(hours=1))
    for _ in range(count):
        await card_guard.count_declines(database, [till.shop], till.desk.limits_of, now=later)


async def test_a_busy_shop_with_some_declines_is_left_alone(till: Any, asked: HeardBank, database: Database) -> None:
    limited = with_limits(till, asked, declines_before_challenge=2)
    for host in range(5):
        assert await try_card(limited, VISA, f"192.0.2.{host}") == Paid()
    for host in range(3):
        await try_card(limited, DECLINED, f"192.0.2.{host}")
    assert await database.fetchval("select count(*) from card_guard where merchant_id = $1", till.shop.merchant_id) == 0


async def test_a_merchant_may_lower_a_limit_and_not_raise_it(till: Any, asked: HeardBank, database: Database) -> None:
    limited = with_limits(till, asked, declines_per_hour=3)
    for own, passing in ((1, 1), (99, 3)):
        await set_back.nobody_tried(database)
        await _own_limits(database, till.shop, address=own)
        results = [await try_card(limited, DECLINED, f"192.0.2.{own}") for _ in range(4)]
        assert results.count(Refused("declined")) == passing


async def test_no_test_card_stops_a_developers_tests(till: Any, asked: HeardBank) -> None:
    tested = replace(till, desk=replace(till.desk, acquirers={"simulator": asked}))
    for number in [DECLINED] * 35 + [WRONG_CVC] * 15 + [ASKS] * 25:
        await try_card(tested, number)
    assert await try_card(tested, VISA) == Paid()
    assert len(asked.purchases) == 76
    assert not any(purchase.authenticate for purchase in asked.purchases)


async def test_in_test_mode_one_checkout_shows_what_a_stopped_customer_sees(till: Any) -> None:
    token = await till.order()
    results = [await try_card(till, DECLINED, token=token) for _ in range(11)]
    assert results == [Refused("declined")] * 10 + [STOPPED]


async def test_a_live_card_is_counted_at_all_merchants_together(
    till: Any, asked: HeardBank, other_shops: list[Shop]
) -> None:
    limited = with_limits(till, asked, tries_per_card=2, wrong_cvcs_per_card=1)
    shops = [replace(limited, shop=Shop(shop.merchant_id, live=True)) for shop in (till.shop, *other_shops)]
    for number, shop in enumerate(shops[:3]):
        assert await try_card(shop, WRONG_CVC, f"192.0.2.{number}") == Refused("wrong_cvc")
    assert await try_card(shops[3], WRONG_CVC, "192.0.2.9") == STOPPED, "three times as many codes as at one merchant"
    assert await try_card(shops[3], VISA, "192.0.2.9") == Paid(), "another card"
    for shop in (*shops[:3], *shops[:3]):
        await try_card(shop, DECLINED, f"198.51.100.{shop.shop.merchant_id % 200}")
    assert await try_card(shops[3], DECLINED, "192.0.2.9") == STOPPED, "three times as many tries as at one merchant"


async def test_who_pays_at_many_merchants_is_not_counted(till: Any, asked: HeardBank, other_shops: list[Shop]) -> None:
    limited = with_limits(till, asked, tries_per_card=1, wrong_cvcs_per_card=1)
    for _ in range(2):
        for shop in (till.shop, *other_shops):
            assert await try_card(replace(limited, shop=Shop(shop.merchant_id, live=True)), VISA) == Paid()


async def test_test_cards_are_counted_for_nobody_else(till: Any, asked: HeardBank, other_shops: list[Shop]) -> None:
    limited = with_limits(till, asked, tries_per_card=1, wrong_cvcs_per_card=1)
    for shop in (till.shop, *other_shops):
        assert await try_card(replace(limited, shop=shop), WRONG_CVC) == Refused("wrong_cvc")


@pytest.fixture
async def other_shops(database: Database, vault: Vault) -> list[Shop]:
    """Test sides of three more merchants; nobody's cards were tried anywhere yet."""
    await database.execute("delete from card_try where merchant_id = 0")
    made = [
        await create_merchant(database, vault, name=f"Shop {n}", email="o@shop.example", now=utc_now())
        for n in range(3)
    ]
    return [Shop(merchant.id, live=False) for merchant in made]


async def test_tries_that_reach_no_bank_do_not_hide_the_share_of_declines(
    till: Any, asked: HeardBank, database: Database
) -> None:
    limited = with_limits(till, asked, attempts_per_checkout=3)
    token = await limited.order()
    checkout = await limited.find(token)
    seen_by_all = (pay(limited.desk, checkout, payer(DECLINED), return_url="", now=utc_now()) for _ in range(12))
    await asyncio.gather(*seen_by_all, return_exceptions=True)
    await limited.desk.finish()
    for _ in range(12):
        await try_card(limited, DECLINED, token=token)
    figures = await database.fetchrow(
        "select sum(tries) as tries, sum(declines) as declines, sum(refused) as refused from card_guard_minute"
        " where merchant_id = $1",
        till.shop.merchant_id,
    )
    assert figures is not None
    assert figures["tries"] == figures["declines"] == len(asked.purchases) == 3
    assert figures["refused"] >= 10


async def test_customers_who_confirm_with_their_bank_are_not_taken_for_guessing_codes(
    till: Any, asked: HeardBank
) -> None:
    limited = with_limits(till, asked, wrong_cvcs_per_card=1)
    for _ in range(3):
        assert isinstance(await try_card(limited, ASKS), ConfirmWithBank)


async def test_a_merchant_may_let_fewer_attempts_pass_at_a_checkout(
    till: Any, asked: HeardBank, database: Database
) -> None:
    limited = with_limits(till, asked)
    await _own_limits(database, till.shop, checkout=2)
    token = await limited.order()
    results = [await try_card(limited, DECLINED, token=token) for _ in range(3)]
    assert results == [Refused("declined"), Refused("declined"), STOPPED]


async def test_a_merchant_may_ask_for_3ds_after_fewer_declines(till: Any, asked: HeardBank, database: Database) -> None:
    limited = with_limits(till, asked)
    await _own_limits(database, till.shop, declines=2)
    for host in range(2):
        await try_card(limited, DECLINED, f"192.0.2.{host}")
    assert isinstance(await try_card(limited, VISA), ConfirmWithBank)


async def _own_limits(database: Database, shop: Shop, **limits: int) -> None:
    await database.execute(
        "insert into card_guard (merchant_id, live, limits) values ($1, $2, $3)",
        shop.merchant_id,
        shop.live,
        json.dumps(limits),
    )


FREE_TRIAL = Terms(
    "Club", "club", "USD", Decimal("10.00"), Period(1, "month"), Trial(Decimal(0), Period(1, "month")), 0
)


async def try_trial(till: Any, number: str, address: str) -> Result:
    """A customer begins a free trial."""
    return await try_card(till, number, address, token=await till.order(terms=FREE_TRIAL, amount=Decimal("10.00")))


async def test_free_trials_are_counted_by_card_although_the_bank_approves(till: Any, asked: HeardBank) -> None:
    limited = with_limits(till, asked, checks_per_card=2)
    for host in (1, 2):
        assert await try_trial(limited, VISA, f"192.0.2.{host}") == Paid()
    assert await try_trial(limited, VISA, "192.0.2.3") == STOPPED
    assert await try_card(limited, VISA, "192.0.2.3") == Paid(), "what is paid for is no check"


async def test_free_trials_of_many_cards_are_counted_by_address(till: Any, asked: HeardBank) -> None:
    limited = with_limits(till, asked, checks_per_card=1)
    cards = [number for number in range(4242424200000000, 4242424200000100) if luhn.is_valid(str(number))]
    results = [await try_trial(limited, str(number), "192.0.2.1") for number in cards[:8]]
    assert results[6:] == [STOPPED] * 2, "six times as many as of one card"
    assert STOPPED not in results[:6]


async def test_challenges_that_customers_left_an_hour_ago_are_no_declines_of_now(
    till: Any, asked: HeardBank, database: Database
) -> None:
    limited = with_limits(till, asked, declines_before_challenge=2)
    for host in range(4):
        assert isinstance(await try_card(limited, ASKS, f"192.0.2.{host}"), ConfirmWithBank)
    await limited.settle(hours=1, minutes=1)
    assert [attempt["state"] for attempt in await limited.attempts()] == ["abandoned"] * 4
    assert await database.fetchval("select count(*) from card_guard where merchant_id = $1", till.shop.merchant_id) == 0


async def test_a_challenge_that_is_passed_is_forgiven(till: Any, asked: HeardBank, bank: Bank) -> None:
    limited = with_limits(till, asked, declines_per_hour=1)
    token = await limited.order()
    result = await try_card(limited, ASKS, token=token)
    assert isinstance(result, ConfirmWithBank)
    bank.decide(result.url.rsplit("/", 1)[1], "approve")
    checkout = await limited.find(token)
    assert checkout.attempt is not None
    assert await settle_challenge(limited.desk, checkout, checkout.attempt, now=utc_now()) == Paid()
    await limited.desk.finish()
    assert await try_card(limited, VISA) == Paid()


async def test_nobody_confirms_a_guessed_number_by_the_secret_key_and_a_dump(
    till: Any, asked: HeardBank, database: Database, deployment_keys: dict[str, str]
) -> None:
    """What rests is made under the vault's newest key, which is in no dump;
    the other secret makes nothing alike.
    """
    await database.execute("delete from card_try")
    await try_card(till, DECLINED)
    rows = await database.fetch("select subject from card_try")
    rest = {row["subject"] for row in rows}
    card, holder = CardDetails(DECLINED, 12, 2040, "Ada Lovelace", "123"), "192.0.2.1"
    ours = {count.subject for count in counts_of(till.desk.vault, card, holder, live=False, is_check=True)}
    assert rest & ours, "this is how it is found"
    thief = Vault.from_settings(generate_key_setting(), deployment_keys["secret_key"])
    guessed = {count.subject for count in counts_of(thief, card, holder, live=False, is_check=True)}
    kinds = {subject.partition(" ")[0] for subject in rest}
    guessed |= {
        f"{kind} {thief.fingerprint(text, purpose=purpose).hex()}"
        for kind in kinds
        for text in (DECLINED, f"{kind} {DECLINED}")
        for purpose in ("card try", "card number", "card")
    }
    assert not rest & guessed
    fingerprints = await database.fetchval("select count(*) from card where fingerprint <> ''")
    assert fingerprints == 0, "none beside the first and last digits"


async def test_with_a_new_key_the_counts_begin_anew_and_the_old_ones_go(
    till: Any, asked: HeardBank, database: Database, deployment_keys: dict[str, str]
) -> None:
    limited = with_limits(till, asked, tries_per_card=1)
    assert await try_card(limited, DECLINED) == Refused("declined")
    assert await try_card(limited, DECLINED, "192.0.2.2") == STOPPED
    keys = f"{generate_key_setting()},{deployment_keys['vault_keys']}"
    rotated = replace(limited.desk, vault=Vault.from_settings(keys, deployment_keys["secret_key"]))
    assert await try_card(replace(limited, desk=rotated), DECLINED) == Refused("declined")
    await card_guard.forget_tries(database, now=utc_now() + timedelta(days=1, minutes=1))
    left = "select count(*) from card_try where merchant_id = $1"
    assert await database.fetchval(left, till.shop.merchant_id) == 0
