"""An acquirer of which every call is measured that says whether its account is well, whoever makes
it: customers at the checkout, workers, a shop's server or the portal.

Lists, disputes, evidence and look-ups in lists (`look_back`) are not: they take their time.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from paydesk.adapters.acquirers.hosted_pages import Page, PageRequest
from paydesk.adapters.acquirers.interface import Acquirer, Finding, MovementFinding, Outcome, Release, UnderWay
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.domain.acquirers.health import Health, Kind


class MeasuredAcquirer(PassingAcquirer):
    """Passes everything on, and takes note of how it was answered."""

    def __init__(self, honest: Acquirer, health: Health, *, name: str = "") -> None:
        """Stand before an acquirer; `name` is that of the account that it is asked for."""
        super().__init__(honest)
        self.name = name or honest.name
        self._health = health

    async def authorize(self, purchase: Purchase) -> Outcome:
        """As the other acquirer: a customer waits. Moves money."""
        return await self._health.measured(self.name, self.honest.authorize(purchase))

    async def open_page(self, wanted: PageRequest) -> Page:
        """As the other acquirer: a customer waits. Money may come of it."""
        return await self._health.measured(self.name, self.honest.open_page(wanted))

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        """As the other acquirer. Moves money."""
        return await self._health.heard(self.name, Kind.CHARGES, self.honest.charge_stored(purchase))

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        """As the other acquirer. Moves money."""
        call = self.honest.capture(key, reference, amount, currency)
        await self._health.heard(self.name, Kind.MOVEMENTS, call)

    async def void(self, key: str, of_key: str) -> Release:
        """As the other acquirer. Moves money."""
        return await self._health.heard(self.name, Kind.MOVEMENTS, self.honest.void(key, of_key))

    async def undo(self, key: str, of_key: str) -> Finding | UnderWay:
        """As the other acquirer. Moves money."""
        return await self._health.heard(self.name, Kind.MOVEMENTS, self.honest.undo(key, of_key))

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        """As the other acquirer. Moves money."""
        call = self.honest.refund(key, reference, amount, currency, number)
        return await self._health.heard(self.name, Kind.MOVEMENTS, call)

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        """As the other acquirer. Moves no money."""
        return await self._health.heard(self.name, Kind.QUESTIONS, self.honest.find(key, not_after))

    async def find_page(self, key: str, reference: str) -> Page:
        """As the other acquirer. Moves no money."""
        return await self._health.heard(self.name, Kind.QUESTIONS, self.honest.find_page(key, reference))

    async def end_page(self, key: str, reference: str) -> Page:
        """As the other acquirer. Moves no money."""
        return await self._health.heard(self.name, Kind.QUESTIONS, self.honest.end_page(key, reference))

    async def end_challenge(self, of_key: str) -> Finding:
        """As the other acquirer. Moves no money."""
        return await self._health.heard(self.name, Kind.QUESTIONS, self.honest.end_challenge(of_key))

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        """As the other acquirer. Moves no money."""
        call = self.honest.find_movement(key, of_key, reference)
        return await self._health.heard(self.name, Kind.QUESTIONS, call)
