from dataclasses import replace
from decimal import Decimal
import os
from hypothesis import HealthCheck, given, settings, strategies as st
from paydesk.core.periods import Period
from paydesk.domain.subscriptions.subscription_terms import Trial
from tests.domain.subscriptions.test_machine import COUPONS, agreed, database, database_url, live_through, steps
free = agreed
@settings(max_examples=int(os.environ.get("N", "150")), deadline=None, suppress_health_check=list(HealthCheck))
@given(terms=agreed, coupon=st.sampled_from(COUPONS), plan=st.lists(st.one_of(steps, steps, st.tuples(st.just("give card"), st.none(), st.sampled_from(("", "answer", "question")))), min_size=4, max_size=18))
async def test_it(database, vault, terms, coupon, plan):
    await live_through(database, vault, terms, coupon, plan, cardless=bool(terms.limit % 2))
