"""The second factor: codes from an app (TOTP, RFC 6238), each used once, and ten recovery codes
for a lost phone.
"""

from __future__ import annotations

import io
import secrets
from dataclasses import dataclass, field
from datetime import datetime

import pyotp
import segno
from pyotp.exceptions import OTPVerificationError

from paydesk.adapters.vault import Sealed
from paydesk.core.errors import Conflict, Malformed
from paydesk.core.wording import worded
from paydesk.database.records import record_of
from paydesk.database.statements import Connection
from paydesk.domain.accounts import lockout
from paydesk.domain.accounts.access_needs import Gate, NotLetIn
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.devices import guesser
from paydesk.domain.accounts.notices import send_notice
from paydesk.domain.accounts.people import queries
from paydesk.domain.accounts.sessions import LIFETIME, Session, Stage, renew_token, require_recent
from paydesk.domain.accounts.sessions import queries as session_queries
from paydesk.domain.accounts.used_codes import is_used_elsewhere
from paydesk.domain.cells.directory import Kind

ISSUER = "Paydesk"
PURPOSE = "second factor"
RECOVERY_CODES = 10
STEPS_BESIDE = 1
"""Codes of the step before and after count too: phones' clocks differ."""

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""None that is read as another."""


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What an app needs: the secret to type, the otpauth URI, and that as a QR code
    (SVG, without a style).
    """

    secret: str = field(repr=False)
    uri: str = field(repr=False)
    qr_code: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Enrolled:
    """The recovery codes of a second factor that was just set up, and its session's new token,
    for the cookie.
    """

    codes: tuple[str, ...] = field(repr=False)
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A person's second factor as it rests: begun in a session, then confirmed; or none."""

    totp_sealed: bytes | None = field(repr=False)
    vault_key_id: str
    totp_confirmed_at: datetime | None
    totp_session: int | None


async def begin_enrolment(gate: Gate, session: Session, *, now: datetime) -> Enrolment:
    """Make a new secret for the person's app; it counts only once a code of it was given,
    in this very session.

    Raises: Conflict if a second factor is set up; it has to be removed first. ConfirmationNeeded.
    """
    if session.stage is Stage.open:
        require_recent(session, now=now)
    secret = pyotp.random_base32()
    sealed = gate.vault.seal(secret.encode(), purpose=PURPOSE, merchant_id=0, row_id=session.person.id)
    begun = await queries.begin_second_factor(
        gate.database,
        person_id=session.person.id,
        session_id=session.id,
        totp_sealed=sealed.blob,
        vault_key_id=sealed.key_id,
    )
    if begun is None:
        raise _is_set_up()
    return _enrolment(secret, session.person.email)


async def show_enrolment(gate: Gate, session: Session) -> Enrolment:
    """The secret that was begun with in this session, once more:
    for a page that says that the code was wrong.

    Raises: Conflict if a second factor is set up or none was begun here.
    """
    _, secret = await _begun(gate, session)
    return _enrolment(secret, session.person.email)


async def confirm_enrolment(gate: Gate, session: Session, code: str, *, now: datetime) -> Enrolled:
    """Set the second factor up with a code of the app; the recovery codes are shown this once.

    The session gets a new token, and the person's other sessions need a code from now on.

    Raises: Malformed if the code is wrong; Conflict if a second factor is set up, or another was
        begun meanwhile.
    """
    begun, secret = await _begun(gate, session)
    step = _step(secret, code, now)
    if step is None:
        raise Malformed(worded("this code is not right; type the one that the app shows now"), "code")
    codes = _new_codes()
    async with gate.database.acquire() as connection, connection.transaction():
        confirmed = await queries.confirm_second_factor(
            connection,
            person_id=session.person.id,
            session_id=session.id,
            totp_sealed=begun.totp_sealed,
            step=step,
            recovery_codes=[_code_hash(gate, session.person.id, one) for one in codes],
            now=now,
        )
        if confirmed is None:
            raise _is_set_up()
        await _passed(connection, session, now)
        token = await renew_token(connection, gate, session)
        await _tell(connection, session, Action.second_factor_added, now)
    return Enrolled(codes, token)


async def pass_second_factor(gate: Gate, session: Session, code: str, *, now: datetime) -> str:
    """Open a session with a code of the app, or with a recovery code;
    wrong ones lead to growing lock-outs.

    Returns the session's new token, for the cookie: one that somebody planted or saw before is
    worth nothing now.

    Raises: NotLetIn if the code is wrong or was used; TooMany; Conflict if the session needs none.
    """
    if session.stage is not Stage.second_factor:
        raise Conflict(worded("this session needs no code now"))
    whom = await guesser(gate, session.person.id, session.client)
    tries = await lockout.count_try(gate, lockout.SECOND_FACTOR, whom, now=now)
    async with gate.database.acquire() as connection, connection.transaction():
        right = await _use_code(connection, gate, session, code, now)
        if right:
            await lockout.forgive_all(connection, gate, lockout.SECOND_FACTOR, whom)
            await _passed(connection, session, now)
            token = await renew_token(connection, gate, session)
        elif tries == lockout.SECOND_FACTOR.free:
            # Whoever it is knows the password: told once, when the first lock-out begins.
            await _tell(connection, session, Action.second_factor_failed, now)
        else:
            await record(connection, session.actor, Action.second_factor_failed, now=now)
    if not right:
        raise NotLetIn(worded("this code is wrong or was used already; wait for the next one"))
    return token


async def ask_again(gate: Gate, session: Session, code: str, *, now: datetime) -> None:
    """Have the person of an open session prove the second factor once more, beside the password.

    Wrong codes lead to growing lock-outs. Raises: Malformed if the code is wrong or was used;
    TooMany.
    """
    whom = await guesser(gate, session.person.id, session.client)
    await lockout.count_try(gate, lockout.SECOND_FACTOR, whom, now=now)
    async with gate.database.acquire() as connection, connection.transaction():
        right = await _use_code(connection, gate, session, code, now)
        if right:
            await lockout.forgive_all(connection, gate, lockout.SECOND_FACTOR, whom)
        else:
            await record(connection, session.actor, Action.second_factor_failed, now=now)
    if not right:
        raise Malformed(worded("this code is wrong or was used already; wait for the next one"), "code")


async def new_recovery_codes(gate: Gate, session: Session, *, now: datetime) -> tuple[str, ...]:
    """Replace all recovery codes; returns the new ones, which are shown this once.

    Raises: ConfirmationNeeded; Conflict if no second factor is set up.
    """
    require_recent(session, now=now)
    codes = _new_codes()
    hashes = [_code_hash(gate, session.person.id, one) for one in codes]
    async with gate.database.acquire() as connection, connection.transaction():
        done = await queries.set_recovery_codes(connection, person_id=session.person.id, recovery_codes=hashes)
        if done is None:
            raise Conflict(worded("no second factor is set up"))
        await _tell(connection, session, Action.recovery_codes_renewed, now)
    return codes


async def remove_second_factor(gate: Gate, session: Session, *, now: datetime) -> None:
    """Do without a second factor from now on.

    Raises: ConfirmationNeeded; Conflict if none is set up, or the person is an operator, who
        needs one.
    """
    require_recent(session, now=now)
    async with gate.database.acquire() as connection, connection.transaction():
        if await queries.remove_second_factor(connection, person_id=session.person.id) is None:
            raise Conflict(
                worded("operators need a second factor") if session.person.operator else worded("none is set up")
            )
        await _tell(connection, session, Action.second_factor_removed, now)


async def mark_of(gate: Gate, person_id: int) -> str:
    """By what cells know a second factor that is the same in two, as of who went along with a
    merchant; empty if none is set up.
    """
    stored = record_of(_Stored, await queries.second_factor_of(gate.database, person_id=person_id))
    if stored.totp_confirmed_at is None:
        return ""
    return _mark(gate, _secret(gate, person_id, stored))


def _mark(gate: Gate, secret: str) -> str:
    return gate.vault.fingerprint(secret, purpose="second factor of two cells").hex()


async def _use_code(connection: Connection, gate: Gate, session: Session, typed: str, now: datetime) -> bool:
    """Use a code up, if it is right, and was not used in another cell."""
    code = "".join(typed.split())
    if code.isascii() and code.isdigit():
        return await _use_step(connection, gate, session, code, now)
    person = session.person
    hashed = _code_hash(gate, person.id, code)
    left = await queries.use_recovery_code(connection, person_id=person.id, code=hashed)
    if left is None or await is_used_elsewhere(
        connection, gate, Kind.recovery_code, hashed.hex(), email=person.email, now=now
    ):
        return False
    await _tell(connection, session, Action.recovery_code_used, now, left=left)
    return True


async def _use_step(connection: Connection, gate: Gate, session: Session, code: str, now: datetime) -> bool:
    """Use a code of the app up."""
    person = session.person
    stored = record_of(_Stored, await queries.second_factor_of(connection, person_id=person.id))
    if stored.totp_confirmed_at is None:
        return False
    secret = _secret(gate, person.id, stored)
    step = _step(secret, code, now)
    if step is None or not await queries.use_step(
        connection, person_id=person.id, totp_sealed=stored.totp_sealed, step=step
    ):
        return False
    used = f"{_mark(gate, secret)} {step}"
    return not await is_used_elsewhere(connection, gate, Kind.totp_step, used, email=person.email, now=now)


async def _passed(connection: Connection, session: Session, now: datetime) -> None:
    await session_queries.pass_second_factor(
        connection, id=session.id, expires_at=session.created_at + LIFETIME, now=now
    )


async def _tell(connection: Connection, session: Session, action: Action, now: datetime, **facts: object) -> None:
    """Write it into the audit log, and tell the person by mail."""
    person = session.person
    await record(connection, session.actor, action, now=now, details=facts)
    await send_notice(
        connection,
        action,
        person_id=person.id,
        to=person.email,
        language=person.language,
        name=person.name,
        client_address=session.client.address,
        now=now,
        **facts,
    )


def _enrolment(secret: str, email: str) -> Enrolment:
    uri = pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=ISSUER)
    drawn = io.BytesIO()
    segno.make(uri, error="m").save(drawn, kind="svg", xmldecl=False, svgns=True, scale=4, border=4, nl=False)
    return Enrolment(secret, uri, drawn.getvalue().decode())


async def _begun(gate: Gate, session: Session) -> tuple[_Stored, str]:
    """What the session began with and its secret:
    what another one was shown, somebody else may know.

    Raises: Conflict if a second factor is set up or none was begun here.
    """
    stored = record_of(_Stored, await queries.second_factor_of(gate.database, person_id=session.person.id))
    if stored.totp_confirmed_at is not None:
        raise _is_set_up()
    if stored.totp_session != session.id:
        raise _not_begun()
    return stored, _secret(gate, session.person.id, stored)


def _secret(gate: Gate, person_id: int, stored: _Stored) -> str:
    if stored.totp_sealed is None:
        raise _not_begun()
    sealed = Sealed(stored.vault_key_id, stored.totp_sealed)
    return gate.vault.open(sealed, purpose=PURPOSE, merchant_id=0, row_id=person_id).decode()


def _step(secret: str, code: str, now: datetime) -> int | None:
    """The time step whose code this is, or None."""
    try:
        return pyotp.TOTP(secret).verify_and_get_timecode(
            "".join(code.split()), for_time=now, valid_window=STEPS_BESIDE
        )
    except OTPVerificationError:
        return None


def _new_codes() -> tuple[str, ...]:
    """Recovery codes like `k7mwq-x3rtb`, 49 bits each: tries are counted, so that is plenty."""
    return tuple("-".join(_letters(5) for _ in range(2)) for _ in range(RECOVERY_CODES))


def _letters(number: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(number))


def _code_hash(gate: Gate, person_id: int, code: str) -> bytes:
    plain = "".join(letter for letter in code.lower() if letter in _LETTERS)
    return gate.vault.fingerprint(f"{person_id} {plain}", purpose="recovery code")


def _not_begun() -> Conflict:
    return Conflict("begin setting up the second factor first")


def _is_set_up() -> Conflict:
    return Conflict("a second factor is set up already; remove it first to set up another")
