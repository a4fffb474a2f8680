"""Whoever is suspended, paid out or given money back while they move, in whichever cell an operator
tries it, is so once: all of it comes along, and the books of both cells are right.
"""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

import pytest
from tests.domain.moving.owning import Owning
from tests.domain.moving.play import Cell, Killed, clean, going, killing
from tests.lengths import one_of

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.cells.fencing import Fenced
from paydesk.domain.ledger.payouts import Sent
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step
from paydesk.domain.operations.merchants import suspend_merchant
from paydesk.domain.operations.payouts import pay_out

TRANSFER = Sent(Decimal(3), "USD", "TRF-1", "command", has_left=True, despite_wait="its statement")
COUNTS = {
    "suspensions": "select count(*) from audit_entry where merchant_id = $1 and action = 'merchant_suspended'",
    "mails of it": "select count(*) from mail where merchant_id = $1 and kind = 'merchant_suspended'",
    "payouts": "select count(*) from payout where merchant_id = $1",
    "given back": "select coalesce(sum(amount), 0)::integer from movement where merchant_id = $1 and state = 'done'"
    " and kind = 'refund' and amount = 2",
    "disputes": "select count(*) from chargeback where merchant_id = $1",
    "open outcomes": "select count(*) from movement where merchant_id = $1 and state = 'processing'",
}


async def operators_do(own: Owning, cell: Cell, sold: int) -> None:
    """Operators of a cell suspend the merchant, record a transfer, and its server gives money back;
    where that is refused, they will try it again.
    """
    with suppress(Fenced, NotFound, Conflict):
        await suspend_merchant(cell.database, COMMAND_LINE, own.play.merchant.id, reason="papers", now=utc_now())
    with suppress(Fenced, NotFound):
        await pay_out(cell.database, COMMAND_LINE, own.play.shop, TRANSFER, now=utc_now())
    with suppress(Fenced, NotFound):
        await own.till(cell).give_back(sold, "2.00", "once")


@pytest.mark.parametrize("step", one_of(4, Step))
async def test_what_is_done_to_who_is_on_the_way_is_done_once(own: Owning, step: Step) -> None:
    play = own.play
    sold, disputed = [await own.till(play.here).sell(order) for order in ("moving-money", "disputed")]
    own.bank.open_dispute(await own.key_of(play.here, disputed), "fraudulent")
    with suppress(Killed):
        await move_merchant(going(play), passed=killing(step))
    await own.look()
    for cell in (play.here, play.there):
        await operators_do(own, cell, sold)
    await move_merchant(going(play))
    await own.look()
    await operators_do(own, play.there, sold)
    await own.read(play.there)
    counts = {
        name: [await cell.database.fetchval(asked, play.merchant.id) for cell in (play.here, play.there)]
        for name, asked in COUNTS.items()
    }
    assert counts == {
        "suspensions": [0, 1], "mails of it": [0, 1], "payouts": [0, 1], "given back": [0, 2], "disputes": [0, 1],
        "open outcomes": [0, 0],
    }  # fmt: skip
    assert await play.there.database.fetchval(
        "select suspended_at is not null from merchant where id = $1", play.merchant.id
    )
    assert (await clean(play.here), await clean(play.there)) == ([], [])
