"""Operators at their door: people of the account's door, who run the deployment."""

from __future__ import annotations

import pytest
from pyotp import TOTP
from tests import set_back
from tests.web.account.conftest import (
    SignUp,
    Visitor,
    gate,
    join,
    keep_cookie,
    link_in_mail,
    owner,
    quick_hashes,
    sign_up,
    stranger,
)

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.second_factor import begin_enrolment, confirm_enrolment
from paydesk.domain.accounts.sessions import find_session

__all__ = ["gate", "join", "link_in_mail", "owner", "quick_hashes", "sign_up", "stranger"]


@pytest.fixture
async def operator(sign_up: SignUp, gate: Gate, database: Database) -> Visitor:
    """Somebody who runs the deployment, logged in with a second factor."""
    visitor, now = await sign_up("Own Shop"), utc_now()
    await set_back.runs_the_deployment(database, visitor.email)
    session = await find_session(gate, visitor.web.cookies["paydesk"], visitor.client, now=now)
    begun = await begin_enrolment(gate, session, now=now)
    enrolled = await confirm_enrolment(gate, session, TOTP(begun.secret).at(now), now=now)
    keep_cookie(visitor, "paydesk", enrolled.token)
    return visitor
