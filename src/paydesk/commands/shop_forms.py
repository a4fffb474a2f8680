"""`paydesk merchant rejected-forms` and `ignored-fields`: what shops send that is refused,
or not known.
"""

from __future__ import annotations

from typing import Annotated

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.options import Live, MerchantId, side_word
from paydesk.commands.printing import AsJson, note, show_facts, show_json, show_table
from paydesk.domain.merchants.ignored_fields import ignored_fields as fields_ignored
from paydesk.domain.merchants.merchant import find_merchant, shop_of
from paydesk.domain.merchants.refused_forms import rejected_forms as newest_rejected_forms


@command
async def rejected_forms(
    merchant_id: MerchantId,
    last: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the checkout forms that were refused lately, newest first, each with the reason."""
    async with deployment() as here:
        await find_merchant(here.database, merchant_id)
        forms = await newest_rejected_forms(here.database, merchant_id, last)
    if as_json:
        show_json(forms)
        return
    for form in forms:
        show_facts(
            [
                ("at", form.at),
                ("mode", side_word(form.live)),
                ("status", form.status),
                ("reason", form.reason),
                *((f"  {name}", value) for name, value in form.fields.items()),
                *([("suspect", form.suspect)] if form.suspect else []),
                *([("hashed", form.hashed)] if form.hashed else []),
            ]
        )
        typer.echo()
    if not forms:
        note(f"no form of merchant {merchant_id} was refused")


@command
async def ignored_fields(
    merchant_id: MerchantId,
    live: Live = False,
    as_json: AsJson = False,
) -> None:
    """List the fields that a shop sends with forms and deliveries and that are ignored,
    since they are not known.
    """
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        found = await fields_ignored(here.database, shop)
    if as_json:
        show_json(found)
        return
    show_table(
        ("field", "sent with", "first", "last"), [(one.name, one.sent_with, one.first_at, one.last_at) for one in found]
    )
