"""Operators at their door: people of the account's door, who run the deployment."""

from __future__ import annotations

import pytest
from tests import set_back
from tests.web.account.conftest import SignUp, Visitor, join, link_in_mail, owner, quick_hashes, sign_up, stranger
from tests.web.account.test_getting_in import log_in, second_factor

from paydesk.database.pool import Database

__all__ = ["join", "link_in_mail", "owner", "quick_hashes", "sign_up", "stranger"]


@pytest.fixture
async def operator(sign_up: SignUp, database: Database) -> Visitor:
    """Somebody who runs the deployment, logged in with a second factor."""
    visitor = await sign_up("Own Shop")
    await set_back.runs_the_deployment(database, visitor.email)
    visitor.web.cookies.delete("paydesk")
    await log_in(visitor, visitor.email)
    await second_factor(visitor)
    return visitor
