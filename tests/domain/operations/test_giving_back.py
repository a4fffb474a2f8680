from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests import breaking
from tests.banks import answering, ending_in
from tests.domain.operations.books import FOUR, TEN, Books
from tests.shopfront import GOOD, go_on, ships
from tests.standings import standings
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Declined,
    DeclineReason,
    Finding,
    NothingHeld,
    OutcomeUnknown,
)
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound, Unavailable
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.acquirers.leases import Unleased
from paydesk.domain.operations.giving_back import (
    GivenBack,
    find_stray,
    finish_given_back,
    give_back,
    settle_given_back,
)
from paydesk.domain.payments.refunding import refund
from paydesk.domain.payments.results import ConfirmWithBank

__all__ = ["database", "database_url"]


async def stray(books: Books) -> str:
    """The key of a purchase that the bank has, and our books have forgotten."""
    key = str((await books.attempt())["idempotency_key"])
    await books.forget()
    return key


async def given(books: Books, key: str) -> GivenBack:
    """An operator gives it back."""
    return await give_back(books.desk, "simulator", key, actor=COMMAND_LINE, now=utc_now())


def kept(books: Books) -> list[Decimal]:
    """What the bank has of customers' money, or holds, purchase by purchase."""
    return [one.net or one.held for one in standings(books.bank.record.operations()).values() if one.net or one.held]


async def begun(books: Books) -> list[tuple[str, str]]:
    """What was begun, and how it stands."""
    rows = await books.database.fetch("select state, refusal from purchase_given_back order by created_at")
    return [(row["state"], row["refusal"]) for row in rows]


@pytest.fixture(autouse=True)
async def _nothing_begun(books: Books) -> None:
    await breaking.nothing_given_back(books.database)


async def test_a_stray_is_shown_before_anything_moves(books: Books) -> None:
    yen = await books.another("yen", currency="JPY", amount="1200")
    reference = (await yen.attempt())["acquirer_reference"]
    key = await stray(yen)
    found = await find_stray(books.desk, "simulator", key)
    assert found == GivenBack("simulator", key, reference, "yen", Decimal(1200), "JPY")
    assert len(kept(books)) == 2
    assert await begun(books) == []


async def test_all_of_it_goes_back_once_however_often_it_is_asked_for(books: Books) -> None:
    key = await stray(books)
    assert (await given(books, key)).amount == TEN
    with pytest.raises(Conflict, match="there is nothing to give back"):
        await given(books, key)
    assert kept(books) == []
    assert await begun(books) == [("done", "")]
    assert await books.states() == [], "nothing of it enters our books"


async def test_what_went_back_in_part_already_is_refused_by_the_bank_and_said(books: Books) -> None:
    await books.give(FOUR)
    key = await stray(books)
    with pytest.raises(Conflict, match="simulator refused to give it back: the payment was refunded"):
        await given(books, key)
    assert kept(books) == [Decimal(6)]


async def test_a_hold_is_let_go_of(books: Books) -> None:
    await ships(books.database, books.shop)
    held = await books.another("held")
    key = await stray(held)
    await given(books, key)
    assert [one for one in kept(books) if one] == [TEN], "only the other order's is left"


async def test_a_key_that_the_acquirer_does_not_have_is_not_found(books: Books) -> None:
    with pytest.raises(NotFound, match="no purchase of this deployment under the key nobody's"):
        await given(books, "nobody's")
    assert await begun(books) == []


async def test_what_another_deployment_bought_on_the_account_is_not_ours_to_give(books: Books) -> None:
    key, honest = await stray(books), books.desk.acquirers["simulator"]
    earlier = await honest.look_back(key)
    assert earlier is not None
    assert earlier.mark is not None

    async def marked_otherwise(_key: str) -> object:
        assert earlier.mark is not None
        return replace(earlier, mark=replace(earlier.mark, deployment="another"))

    async def unmarked(_key: str) -> object:
        return replace(earlier, mark=None)

    for look_back in (marked_otherwise, unmarked):
        with pytest.raises(NotFound):
            await given(books.at(answering(honest, look_back=look_back)), key)
    assert kept(books) == [TEN]


async def test_what_is_in_our_books_is_refunded_by_its_payment_instead(books: Books) -> None:
    key = (await books.attempt())["idempotency_key"]
    with pytest.raises(Conflict, match="is in our books, or was given back: refund its payment instead"):
        await given(books, key)
    assert kept(books) == [TEN]
    assert (await begun(books), await books.problems()) == ([], [])


async def test_what_was_called_declined_and_was_taken_all_the_same_goes_back(books: Books) -> None:
    honest = books.desk.acquirers["simulator"]

    async def lie(purchase: Purchase) -> Declined:
        await honest.authorize(purchase)
        return Declined(DeclineReason.DECLINED)

    await books.at(answering(honest, authorize=lie)).buy("lied")
    (attempt,) = await books.database.fetch("select * from payment_attempt where state = 'declined'")
    assert len(kept(books)) == 2
    assert (await given(books, attempt["idempotency_key"])).merchant_order_id == "lied"
    assert kept(books) == [TEN], "the other one stays"
    assert (await books.compare()).differences == []
    assert await books.problems() == []


async def test_a_declined_purchase_has_nothing_to_give(books: Books) -> None:
    with pytest.raises(AssertionError):
        await books.another("declined", number="4000000000000002")
    key = await books.database.fetchval(
        "select idempotency_key from payment_attempt where state = 'declined' and merchant_id = $1",
        books.shop.merchant_id,
    )
    with pytest.raises(Conflict, match="holds nothing under the key"):
        await given(books, key)


@pytest.mark.parametrize("error", [OutcomeUnknown("no answer"), AcquirerRefused("no such account")])
async def test_an_acquirer_that_can_not_be_asked_is_said_and_nothing_begins(books: Books, error: Exception) -> None:
    key = await stray(books)
    mute = books.at(answering(books.desk.acquirers["simulator"], look_back=ending_in(error)))
    with pytest.raises(Unavailable, match=f"simulator can't be asked: {error}"):
        await given(mute, key)
    assert (await begun(books), kept(books)) == ([], [TEN])


async def test_a_lost_answer_is_finished_by_the_workers_and_gives_back_once(books: Books) -> None:
    key, honest = await stray(books), books.desk.acquirers["simulator"]

    async def answer_is_lost(*asked: str) -> Finding:
        await honest.undo(*asked)
        raise OutcomeUnknown("lost on its way")

    with pytest.raises(Unavailable, match="the workers find out, or ask again"):
        await given(books.at(answering(honest, undo=answer_is_lost)), key)
    assert (await begun(books), kept(books)) == ([("processing", "")], [])
    mute = books.at(answering(honest, undo=ending_in(OutcomeUnknown("still nobody"))))
    await finish_given_back(mute.desk, "simulator", Unleased(books.database), now=utc_now() + timedelta(minutes=1))
    assert await begun(books) == [("processing", "")]
    for _ in range(2):
        await finish_given_back(books.desk, "simulator", Unleased(books.database), now=utc_now() + timedelta(hours=1))
    assert (await begun(books), kept(books)) == ([("done", "")], [])


async def test_a_lost_question_goes_back_when_the_operator_asks_again(books: Books) -> None:
    key = await stray(books)
    mute = books.at(answering(books.desk.acquirers["simulator"], undo=ending_in(OutcomeUnknown("no answer"))))
    with pytest.raises(Unavailable):
        await given(mute, key)
    assert kept(books) == [TEN]
    assert (await given(books, key)).key == key
    assert (await begun(books), kept(books)) == ([("done", "")], [])


@pytest.mark.parametrize(
    ("refused", "why"),
    [(AcquirerRefused("the payment is disputed"), "the payment is disputed"), (AcquirerRefused(""), "refused")],
)
async def test_a_refusal_is_told_and_may_be_tried_again_later(books: Books, refused: AcquirerRefused, why: str) -> None:
    key = await stray(books)
    unwilling = books.at(answering(books.desk.acquirers["simulator"], undo=ending_in(refused)))
    with pytest.raises(Conflict, match=f"simulator refused to give it back: {why}"):
        await given(unwilling, key)
    assert await begun(books) == [("refused", why)]
    await finish_given_back(books.desk, "simulator", Unleased(books.database), now=utc_now())
    assert kept(books) == [TEN], "what was refused is not tried by itself"
    await given(books, key)
    assert (await begun(books), kept(books)) == ([("done", "")], [])


async def test_an_answer_that_is_no_void_is_a_refusal(books: Books) -> None:
    key = await stray(books)

    async def evasive(*_asked: str) -> Finding:
        return NothingHeld()

    with pytest.raises(Conflict, match="it says NothingHeld"):
        await given(books.at(answering(books.desk.acquirers["simulator"], undo=evasive)), key)


async def test_another_acquirers_are_not_finished_by_this_one(books: Books) -> None:
    key, honest = await stray(books), books.desk.acquirers["simulator"]
    mute = answering(honest, undo=ending_in(OutcomeUnknown("no answer")))
    with pytest.raises(Unavailable):
        await given(books.at(mute), key)
    both = replace(books.desk, acquirers={"simulator": honest, "live bank": honest})
    await finish_given_back(both, "live bank", Unleased(both.database), now=utc_now())
    assert await begun(books) == [("processing", "")]
    await finish_given_back(both, "simulator", Unleased(both.database), now=utc_now())
    assert kept(books) == []


@pytest.mark.parametrize("live", [True, False])
async def test_either_side_of_a_merchant_gets_back_its_own(books: Books, live: bool) -> None:
    desk = replace(books.desk, live_acquirer="simulator")
    sides = {
        side: await replace(books, desk=desk, shop=replace(books.shop, live=side)).another(f"side {side}")
        for side in (True, False)
    }
    key = (await sides[live].attempt())["idempotency_key"]
    refunded = sides[not live]
    await refund(desk, refunded.shop, refunded.payment_id, FOUR, requested_by="api", now=utc_now())
    await books.forget()
    assert (await given(books, key)).merchant_order_id == f"side {live}"
    assert sorted(kept(books)) == [Decimal(6), TEN]


class TestSettled:
    """What its acquirer will not undo, and its customer has in another way."""

    @pytest.fixture
    async def refused(self, books: Books) -> Books:
        """A page was left and paid all the same, and the bank will not give that back."""
        opened = await go_on(books.desk, await books.order("twice"))
        assert isinstance(opened, ConfirmWithBank)
        bank = answering(books.desk.acquirers["simulator"], undo=ending_in(AcquirerRefused("the account is closed")))
        books.bank.pages.pay(opened.url.rpartition("/")[2], Way.CARD, GOOD)
        whose = {"merchant_id": books.shop.merchant_id, "id": await newest(books, "payment")}
        await breaking.say(books.database, "payment", whose, state="declined")
        attempt = whose | {"id": await newest(books, "payment_attempt")}
        await breaking.say(books.database, "payment_attempt", attempt, state="abandoned")
        refusing = books.at(bank)
        await refusing.settle(minutes=2)
        return refusing

    async def key(self, books: Books) -> str:
        asked = "select idempotency_key from payment_attempt where state = 'voiding' and merchant_id = $1"
        return str(await books.database.fetchval(asked, books.shop.merchant_id))

    async def alarms(self, books: Books) -> list[str]:
        asked = "select reason from alarm where kind = 'contradiction' and merchant_id = $1 and settled_at is null"
        return [row["reason"] for row in await books.database.fetch(asked, books.shop.merchant_id)]

    async def settle(self, books: Books, key: str, words: str = "by bank transfer") -> GivenBack | None:
        return await settle_given_back(books.desk, "simulator", key, words, actor=COMMAND_LINE, now=utc_now())

    async def test_the_alarm_names_the_command_that_ends_it(self, refused: Books) -> None:
        (reason,) = await self.alarms(refused)
        assert "the account is closed" in reason
        assert f'paydesk undo {await self.key(refused)} --acquirer simulator --settled "how"' in reason

    async def test_it_is_ended_and_differs_no_more(self, refused: Books) -> None:
        key = await self.key(refused)
        with pytest.raises(Malformed, match="say how"):
            await self.settle(refused, key, " ")
        assert (await self.settle(refused, key)) == replace(
            GivenBack("simulator", key, "", "twice", TEN, "USD"), reference=await self.reference(refused, key)
        )
        assert (await self.alarms(refused), await refused.attempt_states()) == ([], ["approved", "voided"])
        assert await refused.reasons() == []
        assert kept(refused) == [TEN, TEN], "the bank has it still"
        assert [one for one in await refused.problems() if "attempt" in str(one)] == []
        asked = "select details::text from audit_entry where action = 'purchase_given_back' and merchant_id = $1"
        assert "by bank transfer" in await refused.database.fetchval(asked, refused.shop.merchant_id)
        with pytest.raises(NotFound):
            await self.settle(refused, key)
        with pytest.raises(Conflict):
            await given(refused, key)

    async def reference(self, books: Books, key: str) -> str:
        asked = "select acquirer_reference from payment_attempt where idempotency_key = $1"
        return str(await books.database.fetchval(asked, key))

    async def test_what_is_given_back_after_all_is_not_settled(self, refused: Books, books: Books) -> None:
        assert await self.settle(books, await self.key(refused)) is None
        assert (await refused.attempt_states(), kept(refused)) == (["approved", "voided"], [TEN])
        assert await self.alarms(refused) == []

    async def test_what_may_yet_be_given_back_is_not_settled(self, refused: Books, books: Books) -> None:
        key = await self.key(refused)
        silent = answering(books.desk.acquirers["simulator"], undo=ending_in(OutcomeUnknown("no answer")))
        with pytest.raises(Unavailable, match="may yet be given back"):
            await self.settle(books.at(silent), key)
        with pytest.raises(NotFound, match="asks for it just now"):
            await self.settle(refused, key)
        assert await refused.attempt_states() == ["approved", "voiding"]

    async def test_a_purchase_that_stands_can_not_be_settled(self, refused: Books, books: Books) -> None:
        with pytest.raises(NotFound):
            await self.settle(refused, (await books.attempt())["idempotency_key"])
        assert await refused.attempt_states() == ["approved", "voiding"]


async def newest(books: Books, table: str) -> int:
    asked = f"select max(id) from {table} where merchant_id = $1"
    return int(await books.database.fetchval(asked, books.shop.merchant_id))
