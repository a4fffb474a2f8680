"""The card that a subscription is charged by, for what is charged besides its renewals."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.adapters.vault import Sealed
from paydesk.core.errors import Conflict, Unavailable
from paydesk.core.wording import worded
from paydesk.database.records import record_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.stored_cards import CARD_NUMBER

queries = load_statements(__package__ or "", "charged_cards.sql")


@dataclass(frozen=True, slots=True)
class ChargedCard:
    """What a subscription, in the revision in which it was read, is charged by."""

    revision: int
    acquirer: str
    network_reference: str
    date_start: datetime
    card_id: int
    number_sealed: bytes | None = field(repr=False)
    vault_key_id: str
    exp_month: int
    exp_year: int
    holder: str
    refused_as: str
    stored_reference: str = field(repr=False)
    suspended: bool

    def opened(self, desk: Desk, shop: Shop) -> tuple[Acquirer, CardDetails]:
        """The acquirer that charges it, and the card; its number stays in memory only for the call.

        Raises: Conflict, Unavailable, each saying why.
        """
        if self.suspended:
            raise Conflict(worded("this shop takes no payments at the moment"))
        if self.refused_as:
            raise Conflict(worded("the bank has refused this card for good; its customer has to give another one"))
        acquirer = desk.acquirers.get(self.acquirer)
        kept = self.stored_reference or (acquirer is not None and acquirer.keeps_cards)
        if acquirer is None or (self.number_sealed is None and not kept):
            raise Unavailable(
                worded("what keeps this card, %(acquirer)s, is not set up any more", acquirer=self.acquirer)
            )
        number = ""
        if not kept and self.number_sealed is not None:
            sealed = Sealed(self.vault_key_id, self.number_sealed)
            named = {"merchant_id": shop.merchant_id, "row_id": self.card_id}
            number = desk.vault.open(sealed, purpose=CARD_NUMBER, **named).decode()
        return acquirer, CardDetails(number, self.exp_month, self.exp_year, self.holder)


async def find_charged_card(database: Connection, shop: Shop, subscription_id: int) -> ChargedCard:
    """The card of a subscription that there is."""
    names = {"merchant_id": shop.merchant_id, "live": shop.live, "subscription_id": subscription_id}
    return record_of(ChargedCard, await queries.find_charged_card(database, **names))
