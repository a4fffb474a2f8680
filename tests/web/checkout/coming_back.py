"""A customer who proves an address at a checkout, as their browser does it."""

from __future__ import annotations

import html

import httpx
from tests.shopfront import mailed_code

from paydesk.adapters.vault import Vault
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop

ADA = "ada@example.com"


def said(answer: httpx.Response) -> str:
    return html.unescape(answer.text)


async def ask(web: httpx.AsyncClient, path: str, email: str = ADA) -> httpx.Response:
    return await web.post(f"{path}/known", data={"email": email})


async def come_known(
    web: httpx.AsyncClient, path: str, database: Database, vault: Vault, shop: Shop, email: str = ADA, **typed: str
) -> None:
    assert (await ask(web, path, email)).headers["location"] == f"{path}/code"
    answer = await web.post(f"{path}/code", data={"code": await mailed_code(database, vault, shop), **typed})
    assert (answer.status_code, answer.headers["location"]) == (303, path)


async def mails_of(database: Database, shop: Shop) -> int:
    found = await database.fetchval(
        "select count(*) from mail where merchant_id = $1 and kind = 'shopper_code'", shop.merchant_id
    )
    return int(found)
