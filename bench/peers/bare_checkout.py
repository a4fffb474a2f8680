"""The floor for bench/checkout.py: the same three routes and the same statements,
as bare FastAPI and asyncpg.

No card checks, no encryption, no bank, no templates: one kind of signature, the statements, a page
of the same size.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from urllib.parse import parse_qsl, urlencode

import asyncpg
import uvicorn
from fastapi import FastAPI, Request, Response

from paydesk.database.pool import SESSION
from paydesk.domain.merchants.keys import queries as merchant_queries
from paydesk.domain.payments.checkout_rows import queries as checkout_queries
from paydesk.domain.payments.outcomes import one_time
from paydesk.domain.payments.paying import queries
from paydesk.domain.payments.time_to_ship import REMINDED_BEFORE, SOONER_BY, TIME_TO_SHIP

PAGE = b"<!doctype html><title>Pay</title>" + b"<p>pay</p>" * 1450
SUCCESS = "http://127.0.0.1/thanks"
PRIVATE_KEY = os.environ["BENCH_PRIVATE_KEY"]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Hold the pool."""
    async with asyncpg.create_pool(
        os.environ["BENCH_DATABASE_URL"], min_size=16, max_size=16, server_settings=SESSION
    ) as pool:
        app.state.pool = pool
        yield


app = FastAPI(lifespan=lifespan, openapi_url=None)


@app.post("/payment/form")
async def form(request: Request) -> Response:
    """Verify and store."""
    now = datetime.now(UTC)
    fields = dict(parse_qsl((await request.body()).decode()))
    pool = app.state.pool
    signer = await pool.fetchrow(
        merchant_queries.find_signer.sql, fields["api_key"], now, "127.0.0.1", now.replace(second=0, microsecond=0)
    )
    given = fields.pop("hash")
    signed = urlencode(sorted(fields.items())) + PRIVATE_KEY
    if hashlib.sha256(signed.encode()).hexdigest() != given:
        return Response(status_code=403)
    checkout_id = await pool.fetchval(
        queries.open_checkout.sql,
        *(signer["merchant_id"], False, hashlib.sha256(given.encode()).digest(), fields["merchant_order_id"]),
        *(Decimal(fields["amount"]), fields["currency"], fields["description"], SUCCESS, None, "v1", signer["id"]),
        *("{}", "", "", "", "", None, None, None, None, None, now, now + timedelta(hours=24)),
    )
    return Response(status_code=303, headers={"Location": f"/checkout/{signer['merchant_id']}-{checkout_id}"})


@app.get("/checkout/{token}")
async def page(token: str) -> Response:
    """Show a page."""
    merchant_id, checkout_id = map(int, token.split("-"))
    await app.state.pool.fetchrow(checkout_queries.find_checkout.sql, merchant_id, False, checkout_id)
    return Response(PAGE, media_type="text/html")


@app.post("/checkout/{token}/pay")
async def pay(token: str, request: Request) -> Response:
    """Record intent and outcome."""
    now = datetime.now(UTC)
    fields = dict(parse_qsl((await request.body()).decode()))
    merchant_id, checkout_id = map(int, token.split("-"))
    pool = app.state.pool
    checkout = await pool.fetchrow(checkout_queries.find_checkout.sql, merchant_id, False, checkout_id)
    known = await pool.fetchrow(
        queries.prepare_attempt.sql,
        *arguments(
            queries.prepare_attempt,
            merchant_id=merchant_id,
            live=False,
            checkout_id=checkout["id"],
            client_address="127.0.0.1",
            declined_since=now - timedelta(hours=1),
            kinds=["address", "card", "wrong_cvc"],
            subjects=["address 127.0.0.1", "card 4242", "cvc 4242"],
            anywhere=[False] * 3,
            mosts=[100_000_000] * 3,
            factors=[1] * 3,
            spans=[timedelta(hours=1)] * 3,
            now=now,
            checkout_most=10,
            address_most=100_000_000,
            real_now=now,
        ),
    )
    await pool.fetchrow(
        queries.begin_attempt.sql,
        *arguments(
            queries.begin_attempt,
            merchant_id=merchant_id,
            live=False,
            checkout_id=checkout["id"],
            terms_agreed="",
            previous_attempt_id=None,
            attempt_id=known["attempt_id"],
            pads=bytes(128),
            acquirer="simulator",
            capture=True,
            card_id=known["card_id"],
            number_sealed=fields["number"].encode(),
            vault_key_id="k",
            bin="424242",
            last4="4242",
            brand="visa",
            exp_month=12,
            exp_year=2030,
            holder=fields["holder"],
            email=fields["email"],
            first_name="Ada",
            last_name="Lovelace",
            username=fields["email"],
            country="GB",
            language="en",
            client_address="127.0.0.1",
            not_after=now,
            lookup_at=now + timedelta(hours=1),
            now=now,
        ),
    )
    await pool.fetch(
        one_time.record_approvals.sql,
        *arguments(
            one_time.record_approvals,
            merchant_ids=[merchant_id],
            lives=[False],
            attempt_ids=[known["attempt_id"]],
            acquirer_references=["r"],
            network_references=["n"],
            nets=[Decimal("8.9")],
            reserves=[Decimal("0.5")],
            fees=[Decimal("0.6")],
            send_to=[None],
            pingback_formats=["json"],
            payloads=["{}"],
            leads_back=[True],
            hold_untils=[None],
            time_to_ship=TIME_TO_SHIP,
            reminded_before=REMINDED_BEFORE,
            sooner_by=SOONER_BY,
            now=now,
        ),
    )
    return Response(status_code=303, headers={"Location": SUCCESS})


def arguments(statement: object, **values: object) -> list[object]:
    """The values in the order of the statement's numbered parameters."""
    order: list[str] = ORDERS[statement.__name__]  # type: ignore[attr-defined]
    return [values[name] for name in order]


ORDERS = {
    name: loaded.driver_adapter.var_sorted[name]
    for loaded, names in ((queries, ("prepare_attempt", "begin_attempt")), (one_time, ("record_approvals",)))
    for name in names
}

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", access_log=False, log_level="warning")
