"""What pages call the fields that messages of errors name."""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.core.wording import Worded
from paydesk.web.texts import mark

FIELD_NAMES = (
    mark("amount"),
    mark("currency"),
    mark("price"),
    mark("the price"),
    mark("quantity"),
    mark("period"),
    mark("name"),
    mark("description"),
    mark("logo"),
    mark("dark logo"),
    mark("picture"),
    mark("code"),
    mark("pingback URL"),
    mark("the pingback URL"),
    mark("the test pingback URL"),
    mark("the URL"),
    mark("the address"),
    mark("website"),
    mark("test pingback URL"),
)
"""Names of fields as the domain has them, which `worded` texts say under `field`;
a name that is not here, such as one of the API, stays as it is.
"""

IN_WORDS: Mapping[str, str] = {
    "trial_price": mark("the trial's price"),
    "shop_name": mark("the shop's name"),
    "sku_id": mark("the SKU"),
    "sku_ids": mark("a package"),
    "periods": mark("the number of payments"),
    "most_uses": mark("the number of uses"),
    "most_per_customer": mark("the number of uses"),
    "dunning_hours": mark("the delays"),
}
"""What pages call fields whose names are none that people read."""


def in_words(message: str) -> str:
    """A message of an error with the field's name as people read it."""
    if not isinstance(message, Worded) or (name := IN_WORDS.get(str(message.values.get("field")))) is None:
        return message
    return Worded(message.pattern, {**message.values, "field": name}, message.one)
