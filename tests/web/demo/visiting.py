"""Somebody in the demo shop, and Paydesk's server, which posts its pingbacks."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import httpx
from tests.markup import Markup

from paydesk_client.signature import Parameters, encode_form, pingback_signature

PRIVATE_KEY, SHIPPING_KEY = "9c4d4efcfe74317c5df7d564cfe9565t", "0a61e6f9015121d6884fe7a450f430a5"
SHOP = "http://127.0.0.1:8001"


class Visitor(httpx.AsyncClient):
    """A visitor of the shop, and Paydesk's server, which posts its pingbacks."""

    async def buy(self, article: str = "coffee", sign_version: str = "v1") -> dict[str, str]:
        """Buy something; the fields that the browser would post to Paydesk."""
        page = await self.post("/buy", data={"article": article, "sign_version": sign_version})
        assert page.status_code == 200, page.text
        return Markup(page.text).inputs()

    async def pingback(self, payload: Mapping[str, Any], version: str = "v1", key: str = PRIVATE_KEY) -> httpx.Response:
        """Send a JSON pingback as Paydesk does."""
        body = json.dumps(payload).encode()
        signed = {
            "v1": {"X-ApiKey": key},
            "v2": {"X-Service-Signature-Version": "v2", "X-Service-Signature": pingback_signature(body, key)},
        }
        headers = {"Content-Type": "application/json", **signed[version]}
        return await self.post("/pingback", content=body, headers=headers)

    async def form_pingback(self, payload: Parameters) -> httpx.Response:
        """Send a v1 pingback with a form body."""
        headers = {"Content-Type": "application/x-www-form-urlencoded", "X-ApiKey": PRIVATE_KEY}
        return await self.post("/pingback", content=encode_form(payload), headers=headers)

    async def thanks(self, fields: Mapping[str, str]) -> str:
        """The thank-you page of an order."""
        page = await self.get(fields["success_url"])
        assert page.status_code == 200
        return page.text

    async def tell(self, fields: Mapping[str, str], event: str, *, key: str = "", **told: Any) -> str:
        """Send a pingback to where the form wanted it; what the shop answered."""
        order = {
            "id": 7,
            "merchant_order_id": fields["merchant_order_id"],
            "status": "successful",
            "paid_amount": json.loads(fields["amount"]),
            "paid_currency": fields["currency"],
            "date": {"date": "2031-03-01 09:44:16.000000", "timezone_type": 3, "timezone": "UTC"},
        }
        body = {"event": event, "payment_order": order | told, "pingback_ts": int(time.time())}
        own = SHIPPING_KEY if fields["api_key"] == "shipping" else PRIVATE_KEY
        answer = await self.post(fields["pingback_url"], json=body, headers={"X-ApiKey": key or own})
        return answer.text

    async def sold(self, article: str = "grinder") -> dict[str, str]:
        """Buy something, and pay."""
        fields = await self.buy(article)
        assert await self.tell(fields, "payment") == "ok"
        return fields

    async def orders(self) -> str:
        return (await self.get("/orders")).text
