"""`/api/openapi.json`, and `/api/docs`: the same as a page, made here,
without anybody else's files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from paydesk.web.api.answers import REFERENCE
from paydesk.web.api.call_examples import answer, call_of, examples
from paydesk.web.api.document import openapi_document
from paydesk.web.api.document_types import Document, Operation, Schema
from paydesk.web.api.services import ApiServices, Services
from paydesk.web.rendering import DoorTemplates, secured
from paydesk.web.texts import Catalogues

_HERE = Path(__file__).parent
_PAGES = DoorTemplates(_HERE / "templates")
_TEXTS = Catalogues(_HERE / "locale", "api").texts_for("en")
_METHODS = ("get", "post", "put", "patch", "delete")

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class _Type:
    """A type in words; the shape that it names (for a link), the values that it allows."""

    words: str
    shape: str
    nullable: bool
    values: Sequence[str | int]
    bounds: str


@router.get("/api/openapi.json")
async def openapi(request: Request, services: Services) -> Response:
    """The OpenAPI document."""
    return Response(_made(request, services).document, media_type="application/json")


@router.get("/api/docs")
async def docs(request: Request, services: Services) -> Response:
    """The OpenAPI document to read."""
    return secured(_made(request, services).page)


@dataclass(frozen=True, slots=True)
class _Made:
    """The document and its page as they are sent."""

    document: bytes
    page: str


def _made(request: Request, services: ApiServices) -> _Made:
    """Both, made once: neither changes while the application runs."""
    state = request.app.state
    if not hasattr(state, "api_document"):
        document = openapi_document(
            request.app.router.routes, address=services.address, sandbox_address=services.sandbox_address
        )
        state.api_document = _Made(bytes(JSONResponse(document).body), _drawn(document))
    made: _Made = state.api_document
    return made


def _drawn(document: Mapping[str, object]) -> str:
    read = msgspec.convert(document, Document)
    operations = [
        {
            "method": method.upper(),
            "path": path,
            "anchor": operation.operation_id,
            **_readable(operation),
            **_shown(read, path, method),
        }
        for path, methods in read.paths.items()
        for method, operation in methods.items()
        if method in _METHODS
    ]
    shapes = [
        {"name": name, "description": shape.description, "fields": _fields(shape)}
        for name, shape in read.components.schemas.items()
    ]
    return _PAGES.render("api_docs.html", _TEXTS, document=document, operations=operations, shapes=shapes)


def _shown(document: Document, path: str, method: str) -> dict[str, object]:
    """An operation by example: the call in some languages, below the sandbox, and its answer."""
    operation, (_, sandbox) = document.paths[path][method], document.servers
    return {
        "examples": examples(call_of(method, path, operation, sandbox.url)),
        "answer": answer(operation.success.shape, document.components.schemas),
    }


def _readable(operation: Operation) -> dict[str, object]:
    """What the page shows of an operation."""
    success = operation.success
    refusals = {status: one for status, one in operation.responses.items() if one is not success}
    return {
        "summary": operation.summary,
        "paragraphs": operation.description.split("\n\n"),
        "parameters": [
            {"name": one.name, "where": one.where, "type": _type(one.schema), "description": one.description}
            for one in operation.parameters
        ],
        "body": _fields(operation.body.shape) if operation.body else [],
        "success": {"description": success.description, "shape": _type(success.shape)},
        "refusals": [(status, one.description) for status, one in refusals.items()],
    }


def _fields(shape: Schema) -> list[dict[str, object]]:
    return [
        {"name": name, "type": _type(field), "description": field.description}
        for name, field in shape.properties.items()
    ]


def _type(schema: Schema) -> _Type:
    """A schema in words."""
    options = schema.any_of or schema.all_of or [schema]
    named = [option for option in options if option.type != "null"]
    first = named[0] if named else schema
    inner = first.items or first
    shape = inner.ref.removeprefix(REFERENCE.format(name=""))
    word = shape or (inner.type if isinstance(inner.type, str) else " or ".join(inner.type))
    bounds = [("from", schema.minimum), ("to", schema.maximum)]
    return _Type(
        words=f"list of {word}" if first.items else word,
        shape=shape,
        nullable=len(named) < len(options),
        values=inner.enum,
        bounds=" ".join(f"{way} {bound}" for way, bound in bounds if bound is not None),
    )
