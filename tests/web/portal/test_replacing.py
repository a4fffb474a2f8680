from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from tests import set_back
from tests.banks import ending_in
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.hosted_pages import Capabilities
from paydesk.adapters.acquirers.interface import AcquirerRefused, Declined, DeclineReason
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.adapters.vault import Sealed, Vault
from paydesk.adapters.vault.vault import VaultError
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.billing.card_lookups import settle_card_changes

__all__ = ["database", "database_url"]

Subscribe = Callable[..., Awaitable[Any]]

MASTERCARD, DECLINED = "5555555555554444", "4000000000000002"
ASKS_CUSTOMER, ANSWER_LOST = "4000000000003220", "4000000000009987"


def leads_to(answer: Any) -> str:
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


@pytest.fixture(autouse=True)
async def _no_lookups_yet(database: Database) -> None:
    """A janitor asks for all merchants, so that what the tests before have left would be
    in the way.
    """
    await set_back.no_card_to_look_up(database)


async def test_another_card_takes_the_old_ones_place(subscriber: Any, charges: Any) -> None:
    assert leads_to(await subscriber.give(MASTERCARD)) == f"{subscriber.path}/card/result"
    assert "charges Mastercard •••• 4444" in await subscriber.page(below="/card/result")
    assert "•••• 4444" in await subscriber.page()
    assert len(charges()) == 1, "checking a card takes nothing"
    assert await subscriber.charge() == 1
    assert {charge.last4 for charge in charges()} == {"4242", "4444"}


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (DECLINED, "another card"),
        ("4000000000009995", "not enough money"),
        ("4000000000000069", "expired"),
        ("4000000000000127", "security code"),
        ("4000000000000119", "technical problem"),
    ],
)
async def test_a_decline_says_so_and_the_old_card_stays(subscriber: Any, number: str, advice: str) -> None:
    answer = await subscriber.give(number)
    shown = html.unescape(answer.text)
    assert answer.status_code == 402
    assert "declined" in shown
    assert advice in shown
    assert "Grace Hopper" in shown
    assert "12 / 40" in shown
    assert "•••• 4242" in await subscriber.page()
    again = await subscriber.web.get(f"{subscriber.path}/card/result")
    assert again.status_code == 402
    assert leads_to(await subscriber.give(MASTERCARD))


@pytest.mark.parametrize(
    ("field", "typed", "says"),
    [
        ("number", "", "Enter the card number."),
        ("number", "4242424242424241", "This card number is not right."),
        ("number", "<script>", "This card number is not right."),
        ("expiry", "", "Enter the expiry date."),
        ("expiry", "13/40", "Enter month and year"),
        ("expiry", "01/20", "This card has expired."),
        ("cvc", "12345", "The security code has 3 digits"),
        ("holder", "", "Enter the name"),
        ("holder", "4242 4242 4242 4242", "Enter the name with letters"),
    ],
)
async def test_a_mistake_is_named_beside_its_field(
    subscriber: Any, count_rows: Any, field: str, typed: str, says: str
) -> None:
    answer = await subscriber.give(MASTERCARD, **{field: typed})
    assert answer.status_code == 400
    assert says in html.unescape(answer.text)
    assert f'id="{field}-error">' in answer.text
    assert await count_rows("card_change") == 0


async def test_a_failing_charge_is_tried_at_once_with_the_new_card(failing: Any) -> None:
    assert "charged to the new card at once" in await failing.page(below="/card")
    await failing.give(MASTERCARD)
    assert "is tried with the new card at once" in await failing.page(below="/card/result")
    assert "is being charged to your card just now" in await failing.page()
    schedule = (await failing.now()).schedule
    assert await failing.charge() == 1
    after = await failing.now()
    assert (after.failures, after.date_next) == (0, schedule.due(3))


async def test_3d_secure_leads_to_the_bank_and_back(subscriber: Any, bank: Bank) -> None:
    bank_page = leads_to(await subscriber.give(ASKS_CUSTOMER))
    assert bank_page.startswith("http://pay.test/simulator/")
    assert "You left your bank’s confirmation" in await subscriber.page(below="/card/result")
    assert "•••• 4242" in await subscriber.page()
    challenge = bank.challenge(bank_page.rpartition("/")[2])
    assert challenge is not None
    assert challenge.return_url == f"http://pay.test{subscriber.path}/card/result"
    bank.decide(challenge.reference, "approve")
    assert "charges Visa •••• 3220" in await subscriber.page(below="/card/result")


async def test_a_refused_confirmation_shows_the_form_again(subscriber: Any, bank: Bank) -> None:
    bank_page = leads_to(await subscriber.give(ASKS_CUSTOMER))
    bank.decide(bank_page.rpartition("/")[2], "reject")
    answer = await subscriber.web.get(f"{subscriber.path}/card/result")
    assert answer.status_code == 402
    assert "could not confirm that it is you" in html.unescape(answer.text)


@pytest.mark.parametrize("decision", ["approve", "reject", "close"])
async def test_who_comes_back_once_it_has_ended_is_asked_for_no_card(
    subscriber: Any, bank: Bank, decision: Any
) -> None:
    bank_page = leads_to(await subscriber.give(ASKS_CUSTOMER))
    await subscriber.cancel()
    bank.decide(bank_page.rpartition("/")[2], decision)
    assert leads_to(await subscriber.web.get(f"{subscriber.path}/card/result")) == subscriber.path
    assert "•••• 3220" not in await subscriber.page()


async def test_the_banks_page_may_be_reached_from_the_form(subscriber: Any) -> None:
    answer = await subscriber.web.get(f"{subscriber.path}/card")
    assert "form-action 'self' http://pay.test" in answer.headers["content-security-policy"]


async def test_an_unknown_outcome_waits_on_a_page_that_goes_on_by_itself(subscriber: Any, desk: Any) -> None:
    waiting = leads_to(await subscriber.give(ANSWER_LOST))
    page = await subscriber.page(below="/card/result")
    assert "We are checking with your bank" in page
    assert '<noscript><meta http-equiv="refresh" content="4; url=?looked=1">' in page
    later = await subscriber.page(below="/card/result?looked=40")
    assert 'content="60; url=?looked=41">' in later
    status = f"{subscriber.path}/card/status"
    assert (await subscriber.web.get(status)).json() == {"state": "processing"}
    assert leads_to(await subscriber.give(MASTERCARD)) == waiting, "no second change meanwhile"
    assert leads_to(await subscriber.web.get(f"{subscriber.path}/card")) == waiting
    await settle_card_changes(desk, now=utc_now() + timedelta(seconds=6))
    assert (await subscriber.web.get(status)).json() == {"state": "done", "url": waiting}
    assert "charges Visa •••• 9987" in await subscriber.page(below="/card/result")


async def test_two_tabs_end_with_one_card_and_nobody_sees_an_error(subscriber: Any) -> None:
    answers = await asyncio.gather(*(subscriber.give(number) for number in (MASTERCARD, MASTERCARD, DECLINED)))
    assert {answer.status_code for answer in answers} <= {303, 402}
    assert (await subscriber.web.get(subscriber.path)).status_code == 200


async def test_a_card_for_what_was_cancelled_in_another_tab_is_not_even_checked(
    subscriber: Any, count_rows: Any
) -> None:
    await subscriber.cancel()
    assert leads_to(await subscriber.give(MASTERCARD)) == subscriber.path
    assert await count_rows("card_change") == 0


async def test_too_many_attempts_are_refused_for_a_while(subscriber: Any, count_rows: Any) -> None:
    statuses = [(await subscriber.give(DECLINED)).status_code for _ in range(11)]
    assert statuses == [402] * 10 + [429]
    answer = await subscriber.give(MASTERCARD)
    assert answer.status_code == 429
    assert "too many attempts" in html.unescape(answer.text)
    assert "<form" not in answer.text, "no live form below it"
    assert f'href="{subscriber.path}"' in answer.text
    assert await count_rows("card_change") == 10


async def test_number_and_code_rest_nowhere_and_never_come_back(
    subscriber: Any, database: Database, bank: Bank
) -> None:
    shown = [(await subscriber.give(number)).text for number in (DECLINED, MASTERCARD, ANSWER_LOST)]
    shown.append((await subscriber.give(MASTERCARD, holder="")).text)
    # Only the merchant's own rows: among all that other tests have written, any three digits
    # are found.
    tables = await database.fetch(
        "select table_name, array_agg(column_name::text) filter (where data_type in ('text', 'jsonb', 'bytea'))"
        " from information_schema.columns where table_schema = 'public' group by table_name"
        " having bool_or(column_name = 'merchant_id') and bool_or(data_type in ('text', 'jsonb', 'bytea'))"
    )
    for table, columns in tables:
        texts = ", ".join(f'"{column}"::text' for column in columns)
        rows = await database.fetch(
            f'select {texts} from "{table}" where merchant_id = $1', subscriber.shop.merchant_id
        )
        shown += [text or "" for row in rows for text in row]
    kept = "\n".join(shown).split("<details")
    text = "\n".join(part.rpartition("</details>")[2] for part in kept)
    assert "4444" in text, "the last four digits may be read"
    for secret in (DECLINED, MASTERCARD, ANSWER_LOST):
        assert secret not in text
    assert not re.search(r"(?<![0-9A-Za-z.:\\-])739(?![0-9A-Za-z.:-])", text)
    operations = repr(bank.record.operations())
    assert MASTERCARD not in operations


async def test_the_stored_number_opens_for_its_own_row_only(subscriber: Any, database: Database, vault: Vault) -> None:
    await subscriber.give(MASTERCARD)
    row = await database.fetchrow(
        "select c.* from card c join subscription s on s.merchant_id = c.merchant_id and s.card_id = c.id"
        " where s.merchant_id = $1",
        subscriber.shop.merchant_id,
    )
    sealed = Sealed(row["vault_key_id"], row["number_sealed"])
    names = {"purpose": "card number", "merchant_id": row["merchant_id"]}
    assert vault.open(sealed, **names, row_id=row["id"]).decode() == MASTERCARD
    with pytest.raises(VaultError):
        vault.open(sealed, **names, row_id=row["id"] + 1)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", "application/x-www-form-urlencoded"),
        (b"number=%00&expiry=%ff&cvc[]=1&holder[a][b]=x", "application/x-www-form-urlencoded"),
        (b"number=" + b"4" * 15000, "application/x-www-form-urlencoded"),
        (b"number=" + b"4" * 20000, "application/x-www-form-urlencoded"),
        (b"[" * 3000, "application/x-www-form-urlencoded"),
        (b"a[" * 3000 + b"=1", "application/x-www-form-urlencoded"),
        (b'{"number": 1}', "application/json"),
        (b"\xff\xfe\x00", "multipart/form-data; boundary=x"),
        (
            b"number=%F0%9F%98%80&expiry=%D9%A1%D9%A2/40&cvc=%D9%A1&holder=%E2%80%AE",
            "application/x-www-form-urlencoded",
        ),
    ],
)
@pytest.mark.parametrize("below", ["/card", "/cancel"])
async def test_hostile_input_is_refused_politely(subscriber: Any, body: bytes, content_type: str, below: str) -> None:
    answer = await subscriber.web.post(
        subscriber.path + below, content=body, headers={"Content-Type": content_type, "Accept-Language": "\x01,;=" * 9}
    )
    assert answer.status_code < 500


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_other_methods_are_refused(subscriber: Any, method: str) -> None:
    for below in ("", "/cancel", "/card", "/card/result", "/card/status"):
        assert (await subscriber.web.request(method, subscriber.path + below)).status_code == 405


async def test_a_result_without_a_change_leads_back(subscriber: Any) -> None:
    assert leads_to(await subscriber.web.get(f"{subscriber.path}/card/result")) == subscriber.path


async def test_a_customer_in_the_sandbox_comes_back_to_the_sandbox(subscriber: Any, bank: Bank) -> None:
    data = {"number": ASKS_CUSTOMER, "expiry": "12/40", "cvc": "123", "holder": "Ada"}
    answer = await subscriber.web.post(f"/sandbox{subscriber.path}/card", data=data)
    challenge = bank.challenge(leads_to(answer).rpartition("/")[2])
    assert challenge is not None
    assert challenge.return_url == f"http://pay.test/sandbox{subscriber.path}/card/result"


async def _declined(_self: SimulatedAcquirer, _purchase: Purchase) -> Declined:
    return Declined(DeclineReason.DECLINED)


class TestOnTheBanksPage:
    """What is charged is replaced on a page of the acquirer's, with a way back to the portal."""

    async def test_what_is_chosen_there_is_charged_from_then_on(
        self, subscriber: Any, bank: Bank, charges: Any
    ) -> None:
        shown = await subscriber.page(below="/card")
        assert "On the page of our payment service you choose" in shown
        address = leads_to(await subscriber.web.post(f"{subscriber.path}/card/continue"))
        page = bank.pages.show(address.rpartition("/")[2])
        assert page is not None
        assert page.return_url.endswith(f"{subscriber.path}/card/result")
        bank.pages.pay(page.reference, Way.CARD, MASTERCARD)
        assert "charges Mastercard •••• 4444" in await subscriber.page(below="/card/result")
        assert "•••• 4444" in await subscriber.page()
        assert await subscriber.charge() == 1
        assert {charge.last4 for charge in charges()} == {"4242", "4444"}

    async def test_a_bank_account_is_named_as_one(self, subscriber: Any, bank: Bank) -> None:
        address = leads_to(await subscriber.web.post(f"{subscriber.path}/card/continue"))
        reference = address.rpartition("/")[2]
        bank.pages.pay(reference, Way.BANK, "")
        bank.pages.decide(reference, approve=True)
        assert "charges what you chose" in await subscriber.page(below="/card/result")
        shown = await subscriber.page()
        assert "Bank account" in shown
        assert "Change how you pay" in shown
        assert "••••" not in shown
        assert "nothing more is charged, " in await subscriber.page(below="/cancel")
        assert "your card" not in await subscriber.page(below="/cancel")

    async def test_of_a_bank_account_that_could_not_be_charged_nothing_is_said_of_a_card(
        self, failing: Any, bank: Bank, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "in the new way at once" not in await failing.page(below="/card")
        reference = leads_to(await failing.web.post(f"{failing.path}/card/continue")).rpartition("/")[2]
        bank.pages.pay(reference, Way.BANK, "")
        bank.pages.decide(reference, approve=True)
        assert "is tried in the new way at once" in await failing.page(below="/card/result")
        assert "is being charged just now" in await failing.page()
        assert "charged in the new way at once" in await failing.page(below="/card")
        monkeypatch.setattr(SimulatedAcquirer, "charge_stored", _declined)
        assert await failing.charge() == 1
        shown = await failing.page()
        assert "If you change how you pay, the new way is tried at once." in shown
        assert "your card" not in shown

    async def test_a_page_that_comes_to_nothing_speaks_of_no_declined_card(
        self, subscriber: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(SimulatedAcquirer, "open_page", ending_in(AcquirerRefused("no pages today")))
        answer = await subscriber.web.post(f"{subscriber.path}/card/continue")
        shown = answer.text if answer.status_code == 402 else await subscriber.page(below="/card/result")
        assert "That did not work, so all stays as it was" in shown
        assert "The card was declined" not in shown

    async def test_who_comes_back_without_choosing_reads_so(self, subscriber: Any) -> None:
        address = leads_to(await subscriber.web.post(f"{subscriber.path}/card/continue"))
        for below in ("/card/result", "/card"):
            assert "You left the page without choosing anything" in await subscriber.page(below=below)
        assert leads_to(await subscriber.web.post(f"{subscriber.path}/card/continue")) == address

    async def test_reloading_the_way_there_leads_back_to_the_form(self, subscriber: Any) -> None:
        assert leads_to(await subscriber.web.get(f"{subscriber.path}/card/continue")) == f"{subscriber.path}/card"

    async def test_the_waiting_page_is_not_led_to_a_page_that_the_customer_came_back_from(
        self, subscriber: Any
    ) -> None:
        address = leads_to(await subscriber.web.post(f"{subscriber.path}/card/continue"))
        status = f"{subscriber.path}/card/status"
        assert (await subscriber.web.get(status)).json() == {"state": "done", "url": address}
        assert (await subscriber.web.get(f"{status}?waits")).json() == {"state": "processing"}


class TestWhereOnlyAPageIs:
    @pytest.fixture(autouse=True)
    def _no_cards(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(SimulatedAcquirer, "capabilities", Capabilities(cards=False, pages=True))

    async def test_no_card_is_asked_for(self, subscriber: Any) -> None:
        assert "Change how you pay" in await subscriber.page()
        shown = await subscriber.page(below="/card")
        assert "Change how you pay for Coffee club" in shown
        assert 'name="number"' not in shown
        assert leads_to(await subscriber.web.post(f"{subscriber.path}/card/continue"))
