"""An operator at the console's door."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.web.account.conftest import (  # noqa: F401 (fixtures)
    Visitor,
    join,
    link_in_mail,
    owner,
    quick_hashes,
    sign_up,
    stranger,
)
from tests.web.account.test_getting_in import log_in, second_factor

from paydesk.database.pool import Database


@pytest.fixture
async def operator(sign_up: Callable[..., Awaitable[Visitor]], database: Database) -> Visitor:  # noqa: F811
    """An operator who is logged in with a second factor, and has a shop of their own besides."""
    visitor = await sign_up("Own Shop")
    await database.execute("update person set operator = true where email = $1", visitor.email)
    visitor.web.cookies.delete("paydesk")
    await log_in(visitor, visitor.email)
    await second_factor(visitor)
    return visitor
