"""The points about what an acquirer lists and finds, whatever was paid with."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from paydesk.adapters.acquirers.interface import NothingHeld
from paydesk.adapters.acquirers.verifying.points import Case, Skipped, named, require
from paydesk.adapters.acquirers.verifying.trial import Trial


class ListPoints:
    """Lists of purchases, disputes and failed refunds, and a key that nobody used."""

    def __init__(self, trial: Trial) -> None:
        self._trial: Final = trial

    def cases(self) -> list[Case]:
        """What is tried, in this order."""
        return [
            ("a key that was never seen", "not found", self._never_seen),
            ("list the purchases", "those that were made are among them", self._list_purchases),
            ("whose the purchases are", "each has the mark that it was made with", self._marks),
            ("read disputes and failed refunds", "an answer", self._read_events),
            ("read the balance and payouts", "an answer", self._read_balance),
        ]

    async def _never_seen(self) -> str:
        found = await self._trial.acquirer.find(self._trial.key())
        require(isinstance(found, NothingHeld), named(found))
        return "not found"

    async def _list_purchases(self) -> str:
        made = {key for key, reference in self._trial.taken.items() if reference}
        if not made:
            raise Skipped("no purchase was made")
        missing, cursor = set(made), ""
        while missing:
            page = await self._trial.acquirer.list_purchases(self._trial.began - timedelta(minutes=5), cursor)
            missing -= {one.key for one in page.purchases}
            cursor = page.next
            if not cursor:
                break
        require(not missing, f"{len(missing)} of {len(made)} are not there")
        return f"{len(made)} are there"

    async def _marks(self) -> str:
        made = [key for key, reference in self._trial.taken.items() if reference]
        if not made:
            raise Skipped("no purchase was made")
        for key in made:
            found = await self._trial.acquirer.look_back(key, self._trial.began - timedelta(minutes=5))
            require(found is not None, f"{key} is not found")
            require(found is not None and found.mark == self._trial.mark, f"{key} has {found and found.mark}")
        return f"{len(made)} are marked"

    async def _read_events(self) -> str:
        disputes, failed = await self._trial.acquirer.disputes(""), await self._trial.acquirer.failed_refunds("")
        return f"{len(disputes.disputes)} and {len(failed.refunds)}"

    async def _read_balance(self) -> str:
        balance = self._trial.acquirer.balance
        if balance is None:
            raise Skipped("it has no key that may read the balance")
        since = self._trial.began - timedelta(days=1)
        lines, payouts = await balance.lines(since, ""), await balance.payouts(since, "")
        return f"{len(lines.lines)} and {len(payouts.payouts)}"
