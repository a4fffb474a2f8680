"""`/api/v1/balance`, `/api/v1/ledger` and `/api/v1/payouts`:
what the merchant has, and how it came to be.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from paydesk.core.money import plain_number
from paydesk.core.paging import Place
from paydesk.domain.ledger.balances import Balance, Posting, Release, balances, list_postings, reserve_calendar
from paydesk.domain.ledger.payouts import Payout, list_payouts
from paydesk.web.api import balance_shapes as shapes
from paydesk.web.api.answers import answer, described
from paydesk.web.api.list_parameters import PageParameters
from paydesk.web.api.lists import ApiList
from paydesk.web.api.services import ByPrivateKey, Services
from paydesk.web.api.shaping import seconds_of

router = APIRouter(tags=["Balance"])
_LEDGER: ApiList[Posting] = ApiList("ledger", shapes.PostingList, lambda one: Place(one.at, one.id))
_PAYOUTS: ApiList[Payout] = ApiList("payouts", shapes.PayoutList, lambda one: Place(one.at, one.id))


@router.get(
    "/api/v1/balance", summary="Show the balance", operation_id="show_balance", responses=described(shapes.BalanceSheet)
)
async def show_balance(caller: ByPrivateKey, services: Services) -> Response:
    """What you have in each currency: pending until it settles, available for payouts,
    held as rolling reserve.

    The calendar says how much of the reserve is released on which day (of your time zone).
    """
    database = services.desk.database
    releases = await reserve_calendar(database, caller.shop)
    held = await balances(database, caller.shop)
    return answer(shapes.BalanceSheet(True, [_balance(balance, releases) for balance in held]))


@_LEDGER.route(router, of="postings", summary="List ledger postings")
async def show_postings(
    caller: ByPrivateKey, services: Services, wanted: Annotated[PageParameters, Query()]
) -> Response:
    """Every change of your balances, newest first:
    `gross` + `fees` = `pending` + `available` + `reserve`, each signed.

    The lines of any period add up to the difference between the balances at its two ends.
    """
    read = partial(list_postings, services.desk.database, caller.shop)
    return await _LEDGER.answer(caller.shop, wanted, read, _posting)


@_PAYOUTS.route(router)
async def show_payouts(
    caller: ByPrivateKey, services: Services, wanted: Annotated[PageParameters, Query()]
) -> Response:
    """Money that was sent to you, newest first."""
    read = partial(list_payouts, services.desk.database, caller.shop)
    return await _PAYOUTS.answer(caller.shop, wanted, read, _payout)


def _balance(balance: Balance, releases: list[Release]) -> shapes.Balance:
    return shapes.Balance(
        currency=balance.currency,
        pending=plain_number(balance.pending),
        available=plain_number(balance.available),
        reserve=plain_number(balance.reserve),
        reserve_releases=[
            shapes.ReserveRelease(release.day.isoformat(), plain_number(release.amount))
            for release in releases
            if release.currency == balance.currency
        ],
    )


def _payout(payout: Payout) -> shapes.Payout:
    return shapes.Payout(
        payout.id, payout.currency, plain_number(payout.amount), payout.reference, seconds_of(payout.at)
    )


def _posting(posting: Posting) -> shapes.Posting:
    return shapes.Posting(
        id=posting.id,
        kind=str(posting.kind),
        at=seconds_of(posting.at),
        payment_id=posting.payment_id,
        payout_id=posting.payout_id,
        currency=posting.currency,
        gross=plain_number(posting.gross),
        fees=plain_number(posting.fees),
        pending=plain_number(posting.pending),
        available=plain_number(posting.available),
        reserve=plain_number(posting.reserve),
    )
