"""Examples of calls and answers for the page of the API, made from the document itself:
curl, PHP, Python and Node without packages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paydesk.web.api.document_types import Operation, Schema

IDS = "1001"
"""What stands for each id in the paths of examples."""

_VALUES: Mapping[str, object] = {
    "amount": "4.00",
    "advance": "31d",
    "code": "SPRING",
    "currency": "USD",
    "description": "Golden Ticket",
    "email": "ada@example.com",
    "event": "payment",
    "firstname": "Ada",
    "lastname": "Lovelace",
    "instrument_id": 1001,
    "brand": "visa",
    "last4": "4242",
    "merchant_order_id": "A-7",
    "payment_order_id": 1001,
    "status": "order_shipped",
    "text": "Delivered on 20 November, see the carrier's confirmation.",
    "time_zone": "UTC",
    "unit_price": "4.00",
    "country": "GB",
}
"""What fields hold in examples, by name; others have a value of their type."""

_OF_TYPES: Mapping[str, object] = {"boolean": False, "integer": 0, "number": 10.0, "object": {}, "array": []}
_SAFE = ("get",)


@dataclass(frozen=True, slots=True)
class Example:
    """A call in one language, as a whole program or command."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """What an example calls: its whole address, and its JSON body if it has any."""

    method: str
    address: str
    body: Mapping[str, object] | None
    keyed: bool

    @property
    def json(self) -> str:
        """The body as JSON text; empty without one."""
        return "" if self.body is None else json.dumps(self.body)

    @property
    def headers(self) -> dict[str, str]:
        """Its headers but that of the private key."""
        typed = {} if self.body is None else {"Content-Type": "application/json"}
        return typed | ({"Idempotency-Key": "a-name-of-your-own"} if self.keyed else {})


def call_of(method: str, path: str, operation: Operation, base: str) -> Call:
    """The call of an operation of the document, with what its body must have."""
    address = base + "/".join(IDS if part.startswith("{") else part for part in path.split("/"))
    keyed = any(parameter.name == "Idempotency-Key" for parameter in operation.parameters)
    if operation.body is None:
        return Call(method.upper(), address, None, keyed)
    shape = operation.body.shape
    fields = {name: _value(name, field, {}) for name, field in shape.properties.items() if name in shape.required}
    return Call(method.upper(), address, fields, keyed)


def examples(call: Call) -> list[Example]:
    """The call in each language."""
    return [
        Example("curl", _curl(call)),
        Example("PHP", _php(call)),
        Example("Python", _python(call)),
        Example("Node", _node(call)),
    ]


def answer(schema: Schema, shapes: Mapping[str, Schema]) -> str:
    """What a type of the document looks like, as JSON text; `shapes` are the document's."""
    return json.dumps(_value("", schema, shapes), indent=2)


def _value(name: str, schema: Schema, shapes: Mapping[str, Schema]) -> object:
    """An example of a type: what its field is known to hold, else something of the type."""
    if schema.named:
        return _value(name, shapes[schema.named], shapes)
    options = [one for one in schema.any_of or schema.all_of if one.type != "null"]
    if options:
        return _value(name, options[0], shapes)
    if schema.enum:
        return schema.enum[0]
    if schema.properties:
        return {inner: _value(inner, shape, shapes) for inner, shape in schema.properties.items()}
    if schema.items:
        return [_value(name, schema.items, shapes)]
    return _of_type(name, [schema.type] if isinstance(schema.type, str) else schema.type)


def _of_type(name: str, types: Sequence[str]) -> object:
    """Something of the first of some types that a field of this name may have."""
    known, first = _VALUES.get(name), types[0]
    if (isinstance(known, str) and "string" in types) or (isinstance(known, int) and "integer" in types):
        return known
    if first == "integer" and name.endswith(("_at", "_ts", "date")):
        return 1795167856
    if first == "integer" and (name == "id" or name.endswith("_id")):
        return int(IDS)
    return True if name == "success" else _OF_TYPES.get(first, "")


def _curl(call: Call) -> str:
    lines = [f'curl -H "X-ApiKey: $PRIVATE_KEY" {call.address}']
    lines += [f'-H "{name}: {value}"' for name, value in call.headers.items()]
    if call.body is not None:
        lines.append("-d '" + call.json.replace("'", "'\\''") + "'")
    elif call.method.lower() not in _SAFE:
        lines[0] = lines[0].replace("curl ", f"curl -X {call.method} ", 1)
    return " \\\n  ".join(lines)


def _php(call: Call) -> str:
    headers = ["'X-ApiKey: ' . getenv('PRIVATE_KEY')"]
    headers += [f"'{name}: {value}'" for name, value in call.headers.items()]
    content = f"\n    'content' => {_php_text(call.json)}," if call.body is not None else ""
    return (
        "$context = stream_context_create(['http' => [\n"
        f"    'method' => '{call.method}',\n"
        f"    'header' => [{', '.join(headers)}],{content}\n"
        "    'ignore_errors' => true,\n"
        "]]);\n"
        f"$answer = json_decode(file_get_contents('{call.address}', false, $context), true);"
    )


def _php_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _python(call: Call) -> str:
    headers = ", ".join(
        ['"X-ApiKey": os.environ["PRIVATE_KEY"]', *(f'"{name}": "{value}"' for name, value in call.headers.items())]
    )
    data = f", data={call.json!r}.encode()" if call.body is not None else ""
    return (
        "import json, os, urllib.request\n\n"
        "request = urllib.request.Request(\n"
        f'    "{call.address}", method="{call.method}"{data},\n'
        f"    headers={{{headers}}},\n"
        ")\n"
        "answer = json.load(urllib.request.urlopen(request))"
    )


def _node(call: Call) -> str:
    headers = ["'X-ApiKey': process.env.PRIVATE_KEY", *(f"'{name}': '{value}'" for name, value in call.headers.items())]
    body = f"\n  body: JSON.stringify({call.json})," if call.body is not None else ""
    return (
        f"const response = await fetch('{call.address}', {{\n"
        f"  method: '{call.method}',\n"
        f"  headers: {{ {', '.join(headers)} }},{body}\n"
        "});\n"
        "const answer = await response.json();"
    )
