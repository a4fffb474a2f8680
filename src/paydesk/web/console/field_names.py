"""What pages call the fields that messages of errors name."""

from __future__ import annotations

from paydesk.web.texts import mark

FIELD_NAMES = (
    mark("amount"),
    mark("currency"),
    mark("price"),
    mark("the price"),
    mark("trial_price"),
    mark("quantity"),
    mark("period"),
    mark("name"),
    mark("shop_name"),
    mark("description"),
    mark("logo"),
    mark("dark logo"),
    mark("picture"),
    mark("code"),
    mark("dunning_hours"),
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
