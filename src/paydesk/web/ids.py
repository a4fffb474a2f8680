"""Ids in paths: `{payment_id:id}` is a number as we write it, `[1-9][0-9]{0,18}`;
anything else is no such page.

Routers convert what stands in a path before a door sees it; Python refuses to read thousands
of digits.
"""

from __future__ import annotations

from starlette.convertors import Convertor, register_url_convertor


class IdConvertor(Convertor[int]):
    """A whole number from 1 on, of at most 19 digits and in one spelling."""

    regex = "[1-9][0-9]{0,18}"

    def convert(self, value: str) -> int:
        """Read a part of a path that matches."""
        return int(value)

    def to_string(self, value: int) -> str:
        """Write an id into a path."""
        return str(value)


register_url_convertor("id", IdConvertor())


def id_in_path(name: str) -> str:
    """The part of a route's path that takes an id by this name: `{payment_id:id}`."""
    return f"{{{name}:id}}"
