"""What an operator was told of a merchant's own account is told anew where the account goes, and
settled where it was.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from tests.domain.moving.owning import Owning
from tests.domain.moving.play import going

from paydesk.core.clock import utc_now
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.payments.failed_refunds import read_failed_refunds


async def test_a_failed_refund_that_nobody_knows_is_an_alarm_where_its_account_is(own: Owning) -> None:
    play, bank = own.play, own.bank
    sold = bank.record.decided(await own.key_of(play.here, await own.till(play.here).sell("sold")))
    assert sold is not None
    by_hand = bank.refund("made-by-hand", sold.reference, Decimal(3), "USD")
    bank.fail_refund(by_hand, "lost_or_stolen_card")
    await read_failed_refunds(play.here.desk, now=utc_now())
    told = "select count(*) from alarm where kind = 'refund_unknown' and settled_at is null"
    assert [await cell.database.fetchval(told) for cell in (play.here, play.there)] == [1, 0]
    await move_merchant(going(play))
    await own.look()
    await read_failed_refunds(play.there.desk, now=utc_now() + timedelta(hours=1))
    assert [await cell.database.fetchval(told) for cell in (play.here, play.there)] == [0, 1]
