"""What can be asked of lists: filters, dates and pages, each checked;
unknown parameters are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.errors import Malformed, NotFound
from paydesk.core.paging import EARLIEST, LARGEST_ID, LATEST, Page, Place, read_moment
from paydesk.domain.merchants.shop import Shop
from paydesk.web.api.cursors import read_cursor
from paydesk.web.json_errors import problem_json

MOST_ROWS = 100
_ID = re.compile(r"[1-9][0-9]{0,18}")


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain a zero byte")
    return text


Moment = Annotated[datetime, BeforeValidator(read_moment), WithJsonSchema({"type": "string"})]
Text = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_storable)]


class PageParameters(BaseModel):
    """What every list takes: which rows, from when to when."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(50, ge=1, le=MOST_ROWS, description="How many to give at most.")
    cursor: str | None = Field(None, max_length=64, description="The `next_cursor` of the page before.")
    since: Moment | None = Field(
        None,
        alias="from",
        description="Only what was made at this time or later: ISO 8601 (UTC without a zone) or Unix seconds.",
    )
    until: Moment | None = Field(None, alias="to", description="Only what was made before this time.")

    def asked(self, name: str, shop: Shop) -> dict[str, str]:
        """What a cursor of this list is bound to: all but the page itself."""
        given = self.model_dump(exclude={"limit", "cursor"}, exclude_none=True)
        side = {"list": name, "side": f"{shop.merchant_id} {shop.live}"}
        return {**{key: str(value) for key, value in given.items()}, **side}

    def page(self, asked: dict[str, str]) -> Page:
        """The page to read, one row longer than asked for, to know whether there is another.

        Raises: Malformed if the cursor is not one of this list.
        """
        before = read_cursor(self.cursor, asked) if self.cursor is not None else Place(LATEST, LARGEST_ID)
        return Page(self.limit + 1, before, self.since or EARLIEST, self.until or LATEST)


class ListParameters(PageParameters):
    """What the lists take that are about orders."""

    merchant_order_id: Text | None = Field(None, description="Only with this order reference.")
    email: Text | None = Field(None, description="Only of the customer with this e-mail address, in any case.")


class PaymentParameters(ListParameters):
    """What the list of payments takes."""

    status: (
        Literal[
            "successful",
            "processing",
            "challenged",
            "pending",
            "declined",
            "reversal_refunded",
            "reversal_refunded_partially",
            "reversal_chargeback",
        ]
        | None
    ) = Field(None, description="Only of this status.")
    subscription_id: int | None = Field(
        None, ge=1, le=LARGEST_ID, description="Only the payments of this subscription."
    )


class SubscriptionParameters(ListParameters):
    """What the list of subscriptions takes; its order reference is that of the first payment."""

    status: Literal["Trial", "Active", "Cancelled", "Expired"] | None = Field(None, description="Only of this status.")


class ChargebackParameters(PageParameters):
    """What the list of chargebacks takes."""

    status: Literal["inquiry", "open", "won", "lost", "dropped"] | None = Field(
        None, description="Only of this status."
    )


class PingbackParameters(ListParameters):
    """What the list of pingbacks takes."""

    status: Literal["waiting", "due", "acknowledged", "exhausted", "muted"] | None = Field(
        None, description="Only of this status."
    )


async def refuse_repeated(request: Request) -> None:
    """Refuse a call that gives a parameter twice: which one counts would be a guess.

    Raises: Malformed.
    """
    names = [name for name, _ in request.query_params.multi_items()]
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(names) <= MOST_ROWS else names[:1]
    if repeated:
        raise Malformed(f"{repeated[0][:40]} is given more than once", *repeated)


def known_id(text: str, noun: str) -> int:
    """The id in a path.

    Raises: NotFound if nothing can have this id.
    """
    if _ID.fullmatch(text) is None or int(text) > LARGEST_ID:
        raise NotFound(f"there is no {noun} {text[:40]}")
    return int(text)


async def refuse_invalid(_request: Request, error: RequestValidationError) -> Response:
    """Say what is wrong with a call's parameters, each by its name: 400 (interface.md §8.2)."""
    return problem_json(400, "; ".join(_complaint(one["loc"], one["type"], one["msg"]) for one in error.errors()[:10]))


def _complaint(where: Sequence[str | int], kind: str, message: str) -> str:
    name = str(where[-1])[:40]
    if kind == "extra_forbidden":
        return f'there is no parameter "{name}"'
    return f"{name}: {message.removeprefix('Value error, ')}"
