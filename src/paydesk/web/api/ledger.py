"""`/api/v1/balance`, `/api/v1/ledger` and `/api/v1/payouts`:
what the merchant has, and how it came to be.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from paydesk.core.money import plain_number
from paydesk.core.paging import Place
from paydesk.domain.ledger.balances import Balance, Posting, Release, balances, list_postings, reserve_calendar
from paydesk.domain.ledger.payouts import list_payouts
from paydesk.web.api import balance_shapes as shapes
from paydesk.web.api.answers import answer, described
from paydesk.web.api.parameters import PageParameters, refuse_repeated
from paydesk.web.api.services import ByPrivateKey, Services
from paydesk.web.api.shaping import seconds_of

router = APIRouter(tags=["Balance"])


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


@router.get(
    "/api/v1/ledger",
    summary="List ledger postings",
    operation_id="list_postings",
    responses=described(shapes.PostingList),
    dependencies=[Depends(refuse_repeated)],
)
async def show_postings(
    caller: ByPrivateKey, services: Services, wanted: Annotated[PageParameters, Query()]
) -> Response:
    """Every change of your balances, newest first:
    `gross` + `fees` = `pending` + `available` + `reserve`, each signed.

    The lines of any period add up to the difference between the balances at its two ends.
    """
    asked = wanted.asked("ledger", caller.shop)
    found = await list_postings(services.desk.database, caller.shop, wanted.page(asked))
    shown, cursor = wanted.cut(found, asked, lambda one: Place(one.at, one.id))
    return answer(shapes.PostingList(True, [_posting(posting) for posting in shown], cursor))


@router.get(
    "/api/v1/payouts",
    summary="List payouts",
    operation_id="list_payouts",
    responses=described(shapes.PayoutList),
    dependencies=[Depends(refuse_repeated)],
)
async def show_payouts(
    caller: ByPrivateKey, services: Services, wanted: Annotated[PageParameters, Query()]
) -> Response:
    """Money that was sent to you, newest first."""
    asked = wanted.asked("payouts", caller.shop)
    found = await list_payouts(services.desk.database, caller.shop, wanted.page(asked))
    shown, cursor = wanted.cut(found, asked, lambda one: Place(one.at, one.id))
    data = [
        shapes.Payout(one.id, one.currency, plain_number(one.amount), one.reference, seconds_of(one.at))
        for one in shown
    ]
    return answer(shapes.PayoutList(True, data, cursor))


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
