"""Whose a key is: the acquirers' own words, as the stand-ins have them from their documents."""

from __future__ import annotations

import pytest
from tests.adapters.acquirers.counters import BankClock
from tests.standins.account import Account
from tests.standins.stripe_checkout import StripeCheckout, running

from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.mollie import MollieAcquirer
from paydesk.adapters.acquirers.own_ids import UNTOLD, own_id_of
from paydesk.adapters.acquirers.simulator import RemoteSimulator
from paydesk.adapters.acquirers.stripe import StripeAcquirer
from paydesk.adapters.acquirers.wrapping import PassingAcquirer


async def at_stripe(stripe: StripeCheckout, key: str) -> str:
    acquirer = StripeAcquirer(key, api_base=stripe.base_url, timeout=60)
    try:
        return await own_id_of(PassingAcquirer(acquirer))
    finally:
        await acquirer.close()


async def at_mollie(account: Account, key: str) -> str:
    acquirer = MollieAcquirer(key, api_base=account.base_url, timeout=60)
    try:
        return await own_id_of(PassingAcquirer(acquirer))
    finally:
        await acquirer.close()


async def test_two_keys_of_one_account_at_stripe_tell_the_same_name_on_each_side(clock: BankClock) -> None:
    async with running(clock) as stripe:
        stripe.accounts = {"sk_test_other": "acct_other", "rk_test_allowed": "acct_standin"}
        assert await at_stripe(stripe, "sk_test_one") == await at_stripe(stripe, "rk_test_allowed")
        assert await at_stripe(stripe, "sk_live_one") != await at_stripe(stripe, "sk_test_one")
        assert await at_stripe(stripe, "sk_test_other") == "acct_other test"


async def test_a_restricted_key_that_may_not_read_its_account_is_refused(clock: BankClock) -> None:
    async with running(clock) as stripe:
        with pytest.raises(AcquirerRefused):
            await at_stripe(stripe, "rk_test_narrow")


async def test_two_keys_of_one_profile_at_mollie_tell_the_same_name_on_each_side(mollie_account: Account) -> None:
    mollie_account.do("set", profiles={"test_other": "pfl_other"})
    assert await at_mollie(mollie_account, "test_one") == await at_mollie(mollie_account, "test_two")
    assert await at_mollie(mollie_account, "live_one") == "pfl_standin live"
    assert await at_mollie(mollie_account, "test_other") == "pfl_other test"


async def test_a_simulated_bank_has_no_account_to_tell() -> None:
    assert await own_id_of(PassingAcquirer(RemoteSimulator("http://127.0.0.1:9"))) == UNTOLD
