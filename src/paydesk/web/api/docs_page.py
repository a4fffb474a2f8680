"""`/api/openapi.json`, and `/api/docs`: the same as a page, made here,
without anybody else's files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from paydesk.web.api.answers import REFERENCE
from paydesk.web.api.document import openapi_document
from paydesk.web.api.services import ApiServices, Services
from paydesk.web.rendering import Pages, secured
from paydesk.web.texts import Catalogues

_HERE = Path(__file__).parent
_PAGES = Pages(_HERE / "templates")
_TEXTS = Catalogues(_HERE / "locale", "api").texts_for("en")
_METHODS = ("get", "post", "put", "patch", "delete")

router = APIRouter(include_in_schema=False)


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


def _drawn(document: dict[str, Any]) -> str:
    operations = [
        {"method": method.upper(), "path": path, "anchor": operation["operationId"], **_readable(operation)}
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in _METHODS
    ]
    shapes = [
        {"name": name, "description": shape.get("description", ""), "fields": _fields(shape)}
        for name, shape in document["components"]["schemas"].items()
    ]
    return _PAGES.render("api_docs.html", _TEXTS, document=document, operations=operations, shapes=shapes)


def _readable(operation: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of an operation."""
    responses = operation["responses"]
    schema = responses["200"]["content"]["application/json"]["schema"]
    return {
        "tag": operation["tags"][0],
        "summary": operation["summary"],
        "paragraphs": operation.get("description", "").split("\n\n"),
        "parameters": [
            {
                "name": parameter["name"],
                "where": parameter["in"],
                "type": _type(parameter["schema"]),
                "description": parameter.get("description", ""),
            }
            for parameter in operation.get("parameters", [])
        ],
        "body": _fields(_body(operation)),
        "success": {"description": responses["200"]["description"], "shape": _type(schema)},
        "refusals": [(status, one["description"]) for status, one in responses.items() if status != "200"],
    }


def _body(operation: dict[str, Any]) -> dict[str, Any]:
    """The schema of an operation's body, empty if it takes none."""
    content = operation.get("requestBody", {}).get("content", {})
    schema: dict[str, Any] = content.get("application/json", {}).get("schema", {})
    return schema


def _fields(shape: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "type": _type(field), "description": field.get("description", "")}
        for name, field in shape.get("properties", {}).items()
    ]


def _type(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema in words: its type, the shape that it names (for a link),
    the values that it allows.
    """
    options = schema.get("anyOf", schema.get("allOf", [schema]))
    named = [option for option in options if option != {"type": "null"}]
    first = named[0] if named else schema
    inner = first.get("items", first)
    reference = str(inner.get("$ref", "")).removeprefix(REFERENCE.format(name=""))
    kinds = inner.get("type", "any")
    word = reference or (" or ".join(kinds) if isinstance(kinds, list) else str(kinds))
    bounds = [f"{way} {schema[key]}" for key, way in (("minimum", "from"), ("maximum", "to")) if key in schema]
    return {
        "words": f"list of {word}" if "items" in first else word,
        "shape": reference,
        "nullable": len(named) < len(options),
        "values": inner.get("enum", []),
        "bounds": " ".join(bounds),
    }
