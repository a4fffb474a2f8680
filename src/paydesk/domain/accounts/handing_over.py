"""Who is logged in in one cell goes on to another without a password.

A token that the first signs for the other opens one session there: of whom that one knows by the
same address, with what they may do there.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from paydesk.adapters.vault import Vault
from paydesk.core.errors import Conflict, Forbidden, Gone
from paydesk.core.wording import worded
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts import lockout
from paydesk.domain.accounts.access_needs import Client, Gate, NotLetIn
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.accounts.devices import guesser
from paydesk.domain.accounts.people import AccountHolder, find_holder, findable
from paydesk.domain.accounts.second_factor import mark_of
from paydesk.domain.accounts.sessions import LoggedIn, Session, begin_session, find_session, require_open

queries = load_statements(__package__ or "", "handing_over.sql")

GOOD_FOR = timedelta(seconds=60)
"""How long a token may be under way."""
CLOCKS = timedelta(seconds=30)
"""By how much the clocks of two cells may differ."""
LONGEST = 4096
"""Characters of a token; nothing longer is looked at."""

_PURPOSE = "handing over between cells"


@dataclass(frozen=True, slots=True)
class HandOver:
    """What one cell says to another: who is logged in there, and to which page they go.

    `second_factor` is whether they have shown one there, and `factor` which (`mark_of`); `operator`
    is whether they are one there. A cell of an older release says neither of these two. `second` is
    when, in seconds of 1970.
    """

    source: int
    target: int
    email: str
    second_factor: bool
    goal: str
    second: int
    nonce: str = field(repr=False)
    operator: bool = False
    factor: str = field(default="", repr=False)

    @property
    def good_until(self) -> datetime:
        """From when on no cell believes it."""
        return datetime.fromtimestamp(self.second, UTC) + GOOD_FOR + CLOCKS


async def hand_over(gate: Gate, session: Session, *, source: int, target: int, goal: str, now: datetime) -> str:
    """A token by which somebody who is logged in here, in cell `source`, is let in in another.

    Raises: SecondFactorNeeded; Conflict if it is this very cell; Forbidden if the address was never
        confirmed, so that it may be a stranger's.
    """
    require_open(session)
    if target == source:
        raise Conflict(worded("you are here already"))
    if session.person.email_confirmed_at is None:
        raise Forbidden(worded("confirm your own e-mail address first; then you can go on without another log-in"))
    said = HandOver(
        source=source,
        target=target,
        email=session.person.email,
        second_factor=session.person.second_factor,
        goal=goal,
        second=int(now.timestamp()),
        nonce=secrets.token_urlsafe(24),
        operator=session.person.operator,
        factor=await mark_of(gate, session.person.id),
    )
    async with gate.database.acquire() as connection, connection.transaction():
        await record(connection, session.actor, Action.handed_over, now=now, details={"to_cell": target})
    return _signed(gate.vault, said)


def read_hand_over(vault: Vault, token: str, *, here: int, now: datetime) -> HandOver:
    """What a token says, which another cell has made for cell `here` a moment ago.

    Raises: Gone, with the same words whatever is wrong with it.
    """
    packed, _, seal = token.partition(".")
    if len(token) > LONGEST or not token.isascii() or not hmac.compare_digest(_seal(vault, packed), seal):
        raise _gone()
    try:
        said = msgspec.json.decode(base64.urlsafe_b64decode(packed), type=HandOver)
    except msgspec.MsgspecError:
        raise _gone() from None
    made = datetime.fromtimestamp(said.second, UTC)
    if said.target != here or said.source == here or not made - CLOCKS <= now < said.good_until:
        raise _gone()
    return said


async def arrive(gate: Gate, said: HandOver, client: Client, *, now: datetime) -> LoggedIn:
    """Open a session for whom another cell has handed over: by the account that has the same
    address here, whose own password and second factor count for all that asks for them again.

    Raises: Gone if somebody was here with this token; NotLetIn if no account here may be opened so;
        TooMany while it is locked out, as at a log-in.
    """
    holder = await find_holder(gate.database, findable(said.email))
    if holder is None or not may_be_opened(holder):
        raise NotLetIn(worded("you can't be let in here by where you come from; log in with your password"))
    await lockout.require_free(gate, lockout.ACCOUNT, await guesser(gate, holder.id, client), now=now)
    shown = (
        holder.second_factor
        and said.second_factor
        and await is_enough(gate, holder, factor=said.factor, is_operator=said.operator)
    )
    async with gate.database.acquire() as connection, connection.transaction():
        if await queries.use_hand_over(connection, nonce=said.nonce, good_until=said.good_until) is None:
            raise _gone()
        token = await begin_session(
            connection,
            gate,
            holder.id,
            client,
            halfway=holder.second_factor and not shown,
            confirmed=False,
            second_factor=shown,
            now=now,
        )
        actor = Actor(holder.id, client.address)
        await record(connection, actor, Action.logged_in, now=now, details={"from_cell": said.source})
    return LoggedIn(token, await find_session(gate, token, client, now=now))


async def forget_hand_overs(database: Connection, *, before: datetime) -> None:
    """Drop what is kept of tokens that no cell believes since a time."""
    await queries.forget_hand_overs(database, before=before)


def may_be_opened(holder: AccountHolder) -> bool:
    """Whether it may be opened from another cell, as it surely is the same person's.

    Of an operator, who reaches everybody's money, only with a second factor of this cell's own,
    which is asked for unless one was shown there.
    """
    proven = bool(holder.password_hash) and holder.email_confirmed_at is not None
    return proven and (holder.second_factor or not holder.operator)


async def is_enough(gate: Gate, holder: AccountHolder, *, factor: str, is_operator: bool) -> bool:
    """Whether a second factor that was shown in another cell is as good as this one's.

    The same is (`factor`), or an operator's. To an account that needs none, who knows its password
    alone can add one of theirs.
    """
    return is_operator or factor == await mark_of(gate, holder.id)


def _gone() -> Gone:
    return Gone(worded("this way here was used already or has expired; go back to where you come from, or log in"))


def _signed(vault: Vault, said: HandOver) -> str:
    packed = base64.urlsafe_b64encode(msgspec.json.encode(said)).decode()
    return f"{packed}.{_seal(vault, packed)}"


def _seal(vault: Vault, packed: str) -> str:
    return vault.fingerprint(packed, purpose=_PURPOSE).hex()
