"""The API's lists: one way to describe them, to read a page, and to answer with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fastapi import APIRouter, Depends
from starlette.responses import Response

from paydesk.core.paging import Page, Place
from paydesk.domain.merchants.shop import Shop
from paydesk.web.api.answers import answer, described
from paydesk.web.api.cursors import write_cursor
from paydesk.web.api.list_parameters import PageParameters, refuse_repeated

Row = TypeVar("Row")
Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Response]])


@dataclass(frozen=True, slots=True)
class ApiList(Generic[Row]):
    """A list of a shop's rows, newest first.

    `name` is the last part of its path, and what its cursors are bound to; `page` is the shape of
    its answer: success, rows, and the cursor to the next page. `place` is where a row stands.
    """

    name: str
    page: type[Any]
    place: Callable[[Row], Place]

    def route(self, router: APIRouter, *, of: str = "", summary: str = "") -> Callable[[Handler], Handler]:
        """Make a function answer for the list; `of` is what its rows are called,
        where that is not the list's name.
        """
        return router.get(
            f"/api/v1/{self.name}",
            summary=summary or f"List {self.name}",
            operation_id=f"list_{of or self.name}",
            responses=described(self.page),
            dependencies=[Depends(refuse_repeated)],
        )

    async def answer(
        self,
        shop: Shop,
        wanted: PageParameters,
        read: Callable[[Page], Awaitable[Sequence[Row]]],
        shape: Callable[[Row], object],
    ) -> Response:
        """The page that is wanted, and the cursor to the next one if there is another.

        Raises: Malformed if the cursor is not one of this list.
        """
        asked = wanted.asked(self.name, shop)
        found = await read(wanted.page(asked))
        shown = found[: wanted.limit]
        cursor = write_cursor(self.place(shown[-1]), asked) if len(found) > wanted.limit else None
        return answer(self.page(True, [shape(row) for row in shown], cursor))
