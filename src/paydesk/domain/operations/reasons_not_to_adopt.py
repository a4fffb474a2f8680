"""Why a purchase at an acquirer that our books have forgotten can't be adopted, in words."""

from __future__ import annotations

from paydesk.core.wording import noted

FORGED = noted("its key is not made of what its mark says with the secret of this deployment")
NO_MERCHANT = noted("its merchant is not in our books")
PAID_TWICE = noted(
    "its order is paid by another purchase, so its customer has paid twice: `paydesk undo` gives this one back"
)
CHARGED_TWICE = noted(
    "its period is paid by another purchase, so its customer has paid twice: `paydesk undo` gives this one back"
)
PAID_AND_GIVEN_BACK = noted("its order was paid by another purchase, whose money went back")
SKIPPED = noted("its period was passed over")
UNDER_WAY = noted("another attempt of its order is under way")
NO_TERMS = noted("what its subscription's customer agreed to is forgotten")
NO_SUBSCRIPTION = noted("its subscription is not in our books")
OTHER_PRICE = noted("it is of another amount than its subscription's price")
WAITS_FOR_ANOTHER = noted("its subscription waits for another period")
ID_TAKEN = noted("its payment's id was given to another payment since")
IN_PART = noted("only a part of it was captured")
