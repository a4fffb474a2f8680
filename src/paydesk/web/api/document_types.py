"""The OpenAPI document of the API as its page reads it: no more of it than is shown."""

from __future__ import annotations

import msgspec


class Schema(msgspec.Struct, frozen=True):
    """A type; its fields, if it has any, and which of them a body must have."""

    type: str | list[str] = "any"
    ref: str = msgspec.field(name="$ref", default="")
    items: Schema | None = None
    any_of: list[Schema] = msgspec.field(name="anyOf", default_factory=list)
    all_of: list[Schema] = msgspec.field(name="allOf", default_factory=list)
    enum: list[str | int] = msgspec.field(default_factory=list)
    minimum: int | float | None = None
    maximum: int | float | None = None
    description: str = ""
    properties: dict[str, Schema] = msgspec.field(default_factory=dict)
    required: list[str] = msgspec.field(default_factory=list)

    @property
    def named(self) -> str:
        """The name of the shape that it stands for; empty for a type of its own."""
        return self.ref.rpartition("/")[2]


class Content(msgspec.Struct, frozen=True):
    """What a body is of."""

    schema: Schema


class Body(msgspec.Struct, frozen=True):
    """What a call takes, or what it answers with."""

    description: str = ""
    content: dict[str, Content] = msgspec.field(default_factory=dict)

    @property
    def shape(self) -> Schema:
        """The type of its JSON; of nothing without any."""
        return self.content["application/json"].schema if "application/json" in self.content else Schema()


class Parameter(msgspec.Struct, frozen=True):
    """What a call takes beside its body: in its path, its query or a header."""

    name: str
    schema: Schema
    where: str = msgspec.field(name="in")
    description: str = ""


class Operation(msgspec.Struct, frozen=True):
    """One call."""

    summary: str
    responses: dict[str, Body]
    operation_id: str = msgspec.field(name="operationId")
    description: str = ""
    parameters: list[Parameter] = msgspec.field(default_factory=list)
    body: Body | None = msgspec.field(name="requestBody", default=None)

    @property
    def success(self) -> Body:
        """What it answers with when it is done."""
        return self.responses.get("200", Body())


class Components(msgspec.Struct, frozen=True):
    """The shapes by name."""

    schemas: dict[str, Schema]


class Server(msgspec.Struct, frozen=True):
    """A base that calls go to."""

    url: str


class Document(msgspec.Struct, frozen=True):
    """The document: calls by path and method, shapes by name, live base and sandbox."""

    servers: list[Server]
    paths: dict[str, dict[str, Operation]]
    components: Components
