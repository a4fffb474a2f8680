"""The calls of the API as the guide's search knows them: where each stands in the API reference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.routing import BaseRoute

REFERENCE = "/api/docs"
"""The page with all calls, each below an anchor of its own."""

_PLACEHOLDER = re.compile(r"\\\{[^/]+\\\}")


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its method and path, what it does in few words and in many, and its anchor."""

    method: str
    path: str
    summary: str
    description: str
    anchor: str

    @property
    def line(self) -> str:
        """How it is asked for."""
        return f"{self.method} {self.path}"

    def answers(self, address: str) -> bool:
        """Whether an address, whole or a path, is one that this call answers at:
        with an id in it, too.
        """
        pattern = _PLACEHOLDER.sub("[^/]+", re.escape(self.path))
        return re.search(f"{pattern}$", address.partition("?")[0]) is not None


class _Said(msgspec.Struct, frozen=True):
    """What the API's document says of a call, as far as it is searched."""

    summary: str
    description: str
    operation_id: str = msgspec.field(name="operationId")


class _Document(msgspec.Struct, frozen=True):
    """The calls by path and method."""

    paths: dict[str, dict[str, _Said]]


def calls_of(request: Request) -> Sequence[Call]:
    """The calls of the application that a request came to, read from its routes once."""
    state = request.app.state
    if not hasattr(state, "guide_calls"):
        state.guide_calls = read_calls(request.app.router.routes)
    calls: Sequence[Call] = state.guide_calls
    return calls


def read_calls(routes: Sequence[BaseRoute]) -> Sequence[Call]:
    """The calls among the routes that the API's document has, too."""
    document = msgspec.convert(get_openapi(title="", version="", routes=routes), _Document)
    return tuple(
        Call(method.upper(), path, said.summary, said.description, said.operation_id)
        for path, methods in document.paths.items()
        for method, said in methods.items()
    )
