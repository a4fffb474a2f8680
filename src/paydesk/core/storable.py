"""Values as PostgreSQL stores them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from paydesk.core.card_numbers import holds_card_number, masked, masked_values
from paydesk.core.errors import Malformed
from paydesk.core.wording import plain, worded


def storable_json(values: Mapping[str, object]) -> str:
    """Values as JSON that PostgreSQL stores: it takes no NUL,
    which becomes a replacement character.
    """
    return msgspec.json.encode(values, enc_hook=plain).decode().replace("\\u0000", "\\ufffd")


def storable_text(text: str, *, longest: int) -> str:
    """The beginning of a text as PostgreSQL stores it, without card numbers."""
    return masked(text).replace("\x00", "\ufffd")[:longest]


def masked_json(values: Mapping[str, object]) -> str:
    """Values as JSON without what looks like a card number, in names,
    texts and numbers of any depth.
    """
    written = msgspec.json.encode(values, enc_hook=plain).decode()
    return (
        msgspec.json.encode(masked_values(values), enc_hook=plain).decode() if holds_card_number(written) else written
    )


def refuse_card_number(text: str, name: str) -> None:
    """Refuse a card number in a field that is kept or echoed to the character,
    which masking would break.

    Raises: Malformed, naming the field, never the number.
    """
    if holds_card_number(text):
        raise Malformed(
            worded(
                "%(field)s holds what looks like a card number, which is accepted nowhere but in the "
                "payment page's own field; send something else, such as a reference with letters between "
                "its digits",
                field=name,
            ),
            name,
        )
