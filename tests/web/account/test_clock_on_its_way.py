"""Who advances the test clock of a shop that goes to another cell reads how far it came."""

from __future__ import annotations

from decimal import Decimal

import pytest
from tests.web.account.conftest import Visitor, text_of
from tests.web.account.selling import seller_of

from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.cells.fencing import Fenced, require_unfenced
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.subscription_terms import Terms
from paydesk.domain.test_clock import advancing


async def test_the_page_says_where_the_clock_stands(
    owner: Visitor, desk: Desk, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    seller = seller_of(desk, owner)
    await seller.sell("A-1", terms=Terms("Tea", "tea", "USD", Decimal("10.00"), Period(1, "month"), None, 0))
    paid = "select count(*) from payment where merchant_id = $1 and captured_at is not null"

    async def require(here: Database, merchant_id: int) -> None:
        """The merchant is fenced once it has renewed twice."""
        await require_unfenced(here, merchant_id)
        if await here.fetchval(paid, merchant_id) == 3:
            raise Fenced("fenced")

    monkeypatch.setattr(advancing, "require_unfenced", require)
    answer = await owner.send(f"{owner.merchant_path}/developers/clock", by="1y")
    assert answer.status_code == 429
    assert "The test clock stands at" in text_of(answer), text_of(answer)
    assert await database.fetchval(paid, int(owner.merchant_path.split("/")[2])) == 3
    assert len(await seller.audited("test_clock_moved")) == 1
