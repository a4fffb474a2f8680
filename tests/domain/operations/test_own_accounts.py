"""An acquirer's own account is one account here, whatever keys it has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests import breaking
from tests.standins.stripe_checkout import StripeCheckout, running, signature

from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.adapters.acquirers.listing import PurchasePage
from paydesk.adapters.acquirers.notices import NoticeRefused
from paydesk.adapters.acquirers.simulator import RemoteSimulator
from paydesk.adapters.acquirers.stripe import StripeAcquirer
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed
from paydesk.database.pool import Database, connected
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.acquirers.accounts import account_named, queries
from paydesk.domain.acquirers.leases import Unleased
from paydesk.domain.acquirers.opening import AccountToOpen, OpenAcquirers
from paydesk.domain.operations.acquirer_accounts import NewAccount, add_account, set_key, set_webhook_secrets
from paydesk.domain.operations.copying import make_harmless
from paydesk.domain.operations.own_accounts import learn
from paydesk.domain.operations.remembered_accounts import queries as remembered
from paydesk.domain.payments.desk import Desk

HOUR = timedelta(hours=1)


class Silent(PassingAcquirer):
    """A simulated bank that runs nowhere, and has nothing in its list."""

    async def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        return PurchasePage((), "")


@pytest.fixture
async def database_url(own_database_url: str) -> str:
    """Accounts are the deployment's, and each test has others."""
    return own_database_url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with connected(database_url) as pool:
        yield pool


@pytest.fixture
async def stripe() -> AsyncIterator[StripeCheckout]:
    """Stripe, where keys with an `a` in their end are of one account, and those with a `b`."""
    async with running(utc_now) as standin:
        standin.accounts = {f"sk_live_{one}": f"acct_{one[-1]}" for one in ("1a", "2a", "1b", "2b")}
        yield standin


@pytest.fixture
async def wide(desk: Desk, vault: Vault, stripe: StripeCheckout) -> AsyncIterator[Desk]:
    """A desk whose settings have an account at Stripe, under the key that ends in `1a`."""

    def opened(account: AccountToOpen) -> Acquirer:
        if account.kind == "simulator":
            return Silent(RemoteSimulator(account.address))
        return StripeAcquirer(
            account.key, api_base=stripe.base_url, timeout=60, webhook_secrets=account.webhook_secrets
        )

    settled = opened(AccountToOpen("stripe", "stripe", "", False, "", "sk_live_1a"))
    known = OpenAcquirers(vault, {"simulator": desk.acquirers["simulator"], "stripe": settled}, opened)
    yield replace(desk, acquirers=known, live_acquirer="stripe")
    await known.close()
    await settled.close()


async def add(desk: Desk, name: str, key: str) -> None:
    await add_account(desk, COMMAND_LINE, NewAccount(name, "stripe", f"sk_live_{key}"), now=utc_now())


async def names(desk: Desk) -> list[tuple[str, str]]:
    rows = await desk.database.fetch("select account, own_id from acquirer_own_id order by account")
    return [tuple(row) for row in rows]


async def test_another_key_of_the_settings_account_is_no_second_account(wide: Desk) -> None:
    with pytest.raises(Conflict, match="the account of the settings, acct_a live"):
        await add(wide, "second", "2a")
    assert await names(wide) == []


async def test_another_key_of_an_added_account_is_no_second_account(wide: Desk) -> None:
    await add(wide, "second", "1b")
    with pytest.raises(Conflict, match='the account "second", acct_b live'):
        await add(wide, "third", "2b")
    assert await names(wide) == [("second", "acct_b live")]
    found = await account_named(wide.database, "second")
    assert found is not None
    assert found.own_id == "acct_b live"
    assert await account_named(wide.database, "third") is None


async def test_a_new_key_must_be_one_of_the_same_account(wide: Desk, stripe: StripeCheckout) -> None:
    stripe.accounts["sk_live_1c"] = "acct_c"
    await add(wide, "second", "1b")
    await set_key(wide, COMMAND_LINE, "second", "sk_live_2b", now=utc_now())
    for other in ("1c", "2a"):
        with pytest.raises(Conflict):
            await set_key(wide, COMMAND_LINE, "second", f"sk_live_{other}", now=utc_now())
    assert await names(wide) == [("second", "acct_b live")]


async def test_a_key_that_does_not_say_whose_it_is_is_refused(wide: Desk) -> None:
    with pytest.raises(Malformed, match="a restricted key must be allowed to read its own account"):
        await add_account(wide, COMMAND_LINE, NewAccount("second", "stripe", "rk_live_narrow"), now=utc_now())


async def test_who_adds_one_account_twice_at_once_has_it_once(wide: Desk) -> None:
    await learn(wide, "stripe", within=Unleased(wide.database).holding, now=utc_now())
    await queries.keep_own_id(wide.database, account="faster", own_id="acct_b live")
    with pytest.raises(Conflict):
        await add(wide, "second", "1b")
    assert await wide.database.fetchval("select count(*) from acquirer_account") == 0


async def test_an_account_that_stands_here_twice_from_before_is_an_alarm_until_it_is_not(
    wide: Desk, stripe: StripeCheckout
) -> None:
    await add(wide, "second", "1b")
    await breaking.forget_own_ids(wide.database)
    stripe.accounts["sk_live_1b"] = "acct_a"
    assert isinstance(wide.acquirers, OpenAcquirers)
    await wide.acquirers.look(wide.database)
    for name in ("stripe", "second"):
        await learn(wide, name, within=Unleased(wide.database).holding, now=utc_now())
    alarm = "select subject, reason from alarm where kind = 'one_account_twice' and settled_at is null"
    ((subject, reason),) = await wide.database.fetch(alarm)
    assert subject == "second"
    assert "acct_a live" in reason
    stripe.accounts["sk_live_1b"] = "acct_b"
    await learn(wide, "second", within=Unleased(wide.database).holding, now=utc_now())
    assert await wide.database.fetch(alarm) == []


async def test_the_settings_may_name_another_account_any_time(wide: Desk, stripe: StripeCheckout) -> None:
    await learn(wide, "stripe", within=Unleased(wide.database).holding, now=utc_now())
    stripe.accounts["sk_live_1a"] = "acct_c"
    await learn(wide, "stripe", within=Unleased(wide.database).holding, now=utc_now())
    assert await names(wide) == [("stripe", "acct_c live")]


async def test_an_account_that_was_forgotten_comes_again_as_what_it_was(wide: Desk) -> None:
    lost = {"accounts": ["second"], "kinds": ["stripe"], "lives": [True], "own_ids": ["acct_b live"]}
    await remembered.miss(wide.database, **lost)
    with pytest.raises(Conflict, match='"second" was another account'):
        await add_account(wide, COMMAND_LINE, NewAccount("third", "stripe", "sk_live_1b"), now=utc_now())
    await breaking.say(wide.database, "acquirer_lost", {}, own_id="acct_c live")
    with pytest.raises(Conflict, match="acct_c live"):
        await add(wide, "second", "1b")
    await breaking.say(wide.database, "acquirer_lost", {}, own_id="acct_b live")
    await add(wide, "second", "2b")
    assert await names(wide) == [("second", "acct_b live")]


async def test_a_notification_to_an_added_account_counts_by_its_own_secret(wide: Desk, stripe: StripeCheckout) -> None:
    assert isinstance(wide.acquirers, OpenAcquirers)
    await add_account(
        wide, COMMAND_LINE, NewAccount("second", "stripe", "sk_live_1b", webhook_secrets="whsec_own"), now=utc_now()
    )
    await wide.acquirers.look(wide.database)
    body = b'{"id": "evt_1", "type": "customer.created", "data": {"object": {"id": "cus_1"}}}'

    def signed(secret: str) -> dict[str, str]:
        return {"stripe-signature": signature(body, secret, at=utc_now())}

    assert wide.acquirers["second"].read_notification(signed("whsec_own"), body) is None
    with pytest.raises(NoticeRefused):
        wide.acquirers["stripe"].read_notification(signed("whsec_own"), body)
    await set_webhook_secrets(wide, COMMAND_LINE, "second", "whsec_new", now=utc_now())
    await wide.acquirers.look(wide.database)
    with pytest.raises(NoticeRefused):
        wide.acquirers["second"].read_notification(signed("whsec_own"), body)
    assert wide.acquirers["second"].read_notification(signed("whsec_new"), body) is None


async def test_a_copy_opens_no_account_that_was_added_before_it_was_one(wide: Desk) -> None:
    await add(wide, "second", "1b")
    known = wide.acquirers
    assert isinstance(known, OpenAcquirers)
    await known.look(wide.database)
    assert "second" in known
    await make_harmless(wide.database)
    await known.look(wide.database)
    assert "second" not in known
    assert await known.unopened(wide.database) == []
    beside = OpenAcquirers(wide.vault, {}, known._open)
    await beside.look(wide.database)
    assert list(beside) == []
    await add_account(
        wide, COMMAND_LINE, NewAccount("bank", "simulator", address="http://bank.test"), now=utc_now() + HOUR
    )
    await beside.look(wide.database)
    assert list(beside) == ["bank"], "its own simulated bank"
