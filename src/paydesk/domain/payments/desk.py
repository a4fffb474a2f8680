"""The desk: what taking payments needs, handed down to everything that moves money."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.adapters.vault import Vault
from paydesk.core.errors import Unavailable
from paydesk.database.pool import Database
from paydesk.domain.acquirers.choosing import Choice, choose, preview, serving
from paydesk.domain.acquirers.health import Health, list_out_of_turn
from paydesk.domain.acquirers.opening import OpenAcquirers
from paydesk.domain.acquirers.routing import Order, Step
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import card_guard
from paydesk.domain.payments.card_guard import Limits, in_test_mode
from paydesk.domain.payments.hold_gate import MoneyGate
from paydesk.domain.payments.idempotency_keys import pads_of
from paydesk.domain.subscriptions.subscription_terms import Terms

KEY_LIFETIME = timedelta(minutes=1)
"""How long an acquirer may accept an attempt's key; a call that takes longer was lost."""

FIRST_LOOK = timedelta(seconds=5)
"""When the janitor first asks about an attempt that has not ended."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What taking payments needs: the database, the vault, acquirers by name,
    and which one serves test and live.
    """

    database: Database
    vault: Vault
    acquirers: Mapping[str, Acquirer]
    test_acquirer: str = "simulator"
    live_acquirer: str | None = None
    limits: Limits = field(default_factory=Limits)
    test_limits: Limits = field(default_factory=lambda: in_test_mode(Limits()))
    pads: bytes = b""
    """What acquirers' keys are made with (`idempotency_keys.pads_of`);
    without, it comes of the vault's secret, for test data."""
    usual_prints: frozenset[bytes] = frozenset()
    """The accounts of the settings, by `acquirers.accounts.print_of`: none is added once more."""
    adopts: bool = True
    """Whether workers write down what acquirers know and our books have forgotten."""
    gives_back_paid_twice: bool = False
    """Whether what is found to be paid twice is given back without an operator."""
    slow_methods: bool = False
    """Whether merchants may have methods offered whose money is sure only in some days."""
    slow_renewals: bool = False
    """Whether these may also be kept for subscriptions, whose renewals then wait for some days."""
    gate: MoneyGate = field(default_factory=MoneyGate)
    """What everything passes that begins to move money."""
    under_way: set[asyncio.Task[object]] = field(default_factory=set)
    """Calls to acquirers that this process has not written down yet."""
    amends: card_guard.Amends = field(default_factory=card_guard.Amends)
    health: Health = field(default_factory=Health)
    """How the accounts answer, and which of them are out of turn."""

    def __post_init__(self) -> None:
        """Give a desk that has no secret of its own for keys one that derives from the vault's."""
        if not self.pads:
            object.__setattr__(self, "pads", pads_of(self.vault.fingerprint("", purpose="keys of acquirers")))

    def keeps_slow_methods(self, terms: Terms) -> bool:
        """Whether a subscription may be charged by what takes days, if its merchant wants that."""
        return self.slow_methods and self.slow_renewals and terms.may_be_slow

    def later(self, accounting: Coroutine[object, None, None]) -> None:
        """Let something be written down that nobody waits for, and that may be lost."""
        task = asyncio.create_task(card_guard.unless_away(accounting))
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)

    def forgive(self, shop: Shop, counts: Sequence[card_guard.Count]) -> None:
        """Let tries be taken back that were no card testing; nobody waits for that."""
        if self.amends.owe(shop, counts):
            self.later(self.amends.make(self.database))

    async def finish(self) -> None:
        """Wait until every call under way has its outcome recorded:
        for a process that is about to stop.
        """
        self.amends.hurry()
        while self.under_way:
            await asyncio.wait(self.under_way)

    def limits_of(self, shop: Shop) -> Limits:
        """The limits of a side; a developer's own tests meet hardly any."""
        return self.limits if shop.live else self.test_limits

    def usual_for(self, *, live: bool) -> str | None:
        """The acquirer of the settings for a side, if it has one."""
        return self.live_acquirer if live else self.test_acquirer

    def is_for_tests(self, name: str) -> bool:
        """Whether an acquirer takes test payments alone."""
        added = isinstance(self.acquirers, OpenAcquirers) and self.acquirers.is_for_tests(name)
        return added or name == self.test_acquirer

    def acquirer_for(self, *, live: bool) -> Acquirer:
        """The acquirer of the settings for new payments.

        Raises: Unavailable if there is none for live payments.
        """
        return self.named(self.usual_for(live=live))

    async def choose(self, order: Order, *, can: Callable[[Acquirer], bool] = lambda _: True) -> Acquirer:
        """The acquirer of the next attempt to pay an order, one that `can` take it if there is one.

        Raises: Unavailable if there is none, or it must not be another one than before.
        """
        return self.named((await self.chosen(order, can=can)).account)

    async def chosen(self, order: Order, *, can: Callable[[Acquirer], bool]) -> Choice:
        """As `choose`, with what chose it. Raises: Unavailable if it must not be another one than
        before.
        """
        usual, known = self.usual_for(live=order.shop.live), self.acquirers
        if not (isinstance(known, OpenAcquirers) and known.are_added):
            return Choice(usual, "the only one")
        able = {name for name in known if can(known[name])}
        return await choose(
            self.database, order, usual=usual, known=set(known), able=able, out=self.health.out, pads=self.pads
        )

    async def preview(self, order: Order) -> list[Step]:
        """Where an order that was not tried yet would go, and why. Moves no money."""
        usual, known = self.usual_for(live=order.shop.live), set(self.acquirers)
        out = {one.account: one.why for one in await list_out_of_turn(self.database)}
        return await preview(self.database, order, usual=usual, known=known, out=out)

    async def serving(self, shop: Shop, currency: str | None) -> list[Acquirer]:
        """The acquirers that take new payments of a shop in a currency (None: in any), in the order
        in which they are asked.
        """
        usual, known = self.usual_for(live=shop.live), self.acquirers
        if isinstance(known, OpenAcquirers) and known.are_added:
            return [known[name] for name in await serving(self.database, shop, currency, usual, set(known))]
        return [] if usual is None else [known[usual]]

    def named(self, name: str | None) -> Acquirer:
        """The acquirer that was chosen. Raises: Unavailable if nobody was."""
        if name is None:
            raise Unavailable("live payments need a live acquirer, and none is configured")
        return self.acquirers[name]
