"""What became of attempts on an acquirer's page, as the janitor asks: of pages that are open, lost,
forgotten, or paid by a slow method.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from paydesk.adapters.acquirers.interface import (
    Acquirer,
    Approved,
    Challenged,
    Declined,
    Finding,
    FollowsTestClocks,
    KeyUsed,
    NoSuchPage,
    NothingHeld,
    OutcomeUnknown,
    Pending,
    Voided,
)
from paydesk.core.wording import noted
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.payments.asking_pages import OpenedPage, end_page, find_page
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.forgotten_purchases import by_key, hold, take_up, took
from paydesk.domain.payments.lookups import (
    GRACE,
    UNKNOWN_THERE,
    Lookup,
)
from paydesk.domain.payments.page_requests import open_again
from paydesk.domain.payments.states import AttemptState


async def find_on_page(desk: Desk, acquirer: Acquirer, lookup: Lookup, page: OpenedPage, *, now: datetime) -> Finding:
    """What became of a page of the acquirer's. Moves no money. Raises: OutcomeUnknown.

    Until its address is known it is asked for again. One that nobody waits for, or is to pay on any
    more, is ended. One that its acquirer does not know is waited for until its end is past.
    """
    if lookup.state is AttemptState.PENDING:
        return await _of_pending(desk, acquirer, lookup, page, now=now)
    if not page.reference:
        return await _of_unknown_page(desk, acquirer, lookup, page, now=now)
    is_left = lookup.state is AttemptState.ABANDONED or lookup.page_ending
    try:
        return await (end_page if is_left or now > page.expires_at + GRACE else find_page)(desk, page)
    except OutcomeUnknown as error:
        if not isinstance(error.__cause__, NoSuchPage) or now <= page.expires_at + UNKNOWN_THERE:
            raise
        return await _of_lost_page(desk, acquirer, lookup, page, now=now)


async def _of_lost_page(desk: Desk, acquirer: Acquirer, lookup: Lookup, page: OpenedPage, *, now: datetime) -> Finding:
    """What became of a page that its acquirer does not know, and that is past its end.
    Moves no money.

    A payment under its key counts; without one nothing is held, which an operator is told. Raises:
    OutcomeUnknown.
    """
    earlier = await acquirer.look_back(lookup.key)
    if earlier is not None and isinstance(earlier.finding, Challenged):
        earlier = replace(earlier, finding=await acquirer.end_challenge(lookup.key))
    if earlier is not None and isinstance(earlier.finding, Approved):
        if took(earlier, lookup.amount, lookup.currency, capture=lookup.capture):
            return replace(earlier.finding, until=None)
        await hold(desk.database, lookup.shop, lookup.attempt_id, earlier)
        raise OutcomeUnknown("what was paid under the key of a lost page is another sum")
    if earlier is not None and not isinstance(earlier.finding, Declined | Voided | NothingHeld):
        raise OutcomeUnknown("what was begun under the key of a lost page is not decided")
    why = noted(
        "%(name)s does not know its page %(reference)s any more, nor a payment under its key: it counts as not paid. "
        "Look for the order there, and whether its secret key is that of the account where the page was made",
        name=acquirer.name,
        reference=page.reference,
    )
    alarm = Alarm(AlarmKind.contradiction, f"attempt {lookup.attempt_id}", why, lookup.shop)
    await raise_alarms(desk.database, [alarm], now=now)
    return Voided()


async def _of_pending(desk: Desk, acquirer: Acquirer, lookup: Lookup, page: OpenedPage, *, now: datetime) -> Finding:
    """What the bank says by now of a payment by a slow method. Raises: OutcomeUnknown.

    One whose page was forgotten, here or there, is asked for by its key. Moves (simulated) money
    where its shop's test clock has come to the day.
    """
    await pass_time_if_due(acquirer, lookup, now=now)
    if not page.reference:
        return await _by_its_key(desk, acquirer, lookup)
    try:
        return await find_page(desk, page)
    except OutcomeUnknown as error:
        if not isinstance(error.__cause__, NoSuchPage):
            raise
        return await _by_its_key(desk, acquirer, lookup)


async def pass_time_if_due(acquirer: Acquirer, lookup: Lookup, *, now: datetime) -> None:
    """Tell an acquirer that follows test clocks that the days of a pending payment are over, if its
    shop's clock has come there. Moves (simulated) money. Raises: OutcomeUnknown.
    """
    is_time = lookup.state is AttemptState.PENDING and lookup.sure_at is not None and now >= lookup.sure_at
    if is_time and not lookup.shop.live and isinstance(acquirer, FollowsTestClocks):
        await acquirer.pass_time(lookup.key)


async def _by_its_key(desk: Desk, acquirer: Acquirer, lookup: Lookup) -> Finding:
    """What an older purchase under the key of an attempt has come to, if it is of the same sum.
    Moves no money. Raises: OutcomeUnknown.
    """
    earlier = await acquirer.look_back(lookup.key)
    if earlier is None or isinstance(earlier.finding, Challenged):
        raise OutcomeUnknown("the acquirer does not say what an older purchase has come to")
    if not isinstance(earlier.finding, Approved | Pending):
        return earlier.finding
    if not took(earlier, lookup.amount, lookup.currency, capture=lookup.capture):
        await hold(desk.database, lookup.shop, lookup.attempt_id, earlier)
        raise OutcomeUnknown("an older purchase under its key took other money")
    await take_up(desk.database, lookup.shop, lookup.attempt_id, earlier)
    found = by_key(earlier.finding)
    return replace(found, until=None) if isinstance(found, Approved) else found


async def _of_unknown_page(
    desk: Desk, acquirer: Acquirer, lookup: Lookup, page: OpenedPage, *, now: datetime
) -> Finding:
    """What became of a page whose address is not recorded: it is asked for again, the same comes
    back. Moves no money. Raises: OutcomeUnknown.

    Past its time to be made it is ended, too. Nobody has its address, unless the database was put
    back to before it was written down: then its customer may be on it at this moment, so that an
    acquirer that can't say is asked again until nobody can pay there any more. What was paid there
    by a slow method, and came to nothing, is asked for by its key: it may be paid after all.
    """
    if lookup.was_pending:
        return await _by_its_key(desk, acquirer, lookup)
    if lookup.state is not AttemptState.PROCESSING or now > page.expires_at + GRACE:
        return NothingHeld()
    final = lookup.not_after + GRACE
    try:
        finding: Finding = await open_again(desk, page.shop, page.attempt_id, acquirer)
    except OutcomeUnknown as error:
        if now > final and isinstance(error.__cause__, KeyUsed):
            older = await _by_its_key(desk, acquirer, lookup)
            return older if isinstance(older, Approved | Pending) else NothingHeld()
        raise
    if (now > final or lookup.page_ending) and isinstance(finding, Challenged):
        return await end_page(desk, replace(page, reference=finding.reference))
    return finding
