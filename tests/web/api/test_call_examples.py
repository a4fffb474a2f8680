"""Every call of the API by example: programs that run, and answers of the documented types."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
from typing import Any

import httpx
import msgspec
import pytest

from paydesk.web.api.call_examples import Call, answer, call_of, examples
from paydesk.web.api.document_types import Document, Operation, Schema

HARD = Call("POST", "http://a/1001", {"text": 'it\'s "so" \\ $x'}, keyed=True)


@pytest.fixture
async def document(web: httpx.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = (await web.get("/api/openapi.json")).json()
    return found


def calls(document: dict[str, Any]) -> list[tuple[Call, dict[str, Any]]]:
    return [
        (call_of(method, path, msgspec.convert(operation, Operation), "http://a"), operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


async def test_every_call_has_its_address_its_body_and_its_key(document: dict[str, Any]) -> None:
    for call, operation in calls(document):
        assert "{" not in call.address
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        assert set(call.body or {}) == set(body.get("required", ()))
        assert "" not in (call.body or {}).values(), f"{call.address}: a field needs an example"
        assert [example.language for example in examples(call)] == ["curl", "PHP", "Python", "Node"]
        for example in examples(call):
            assert call.address in example.text
            assert "PRIVATE_KEY" in example.text


async def test_answers_are_of_the_types_that_are_documented(document: dict[str, Any]) -> None:
    shapes = document["components"]["schemas"]
    types = msgspec.convert(document, Document).components.schemas
    for call, operation in calls(document):
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        shown = json.loads(answer(msgspec.convert(schema, Schema), types))
        assert set(shown) == set(shapes[schema["$ref"].rpartition("/")[2]]["properties"]), call.address
        assert shown["success"] is True


def test_texts_are_quoted_for_their_language() -> None:
    curl, php, python, node = (example.text for example in examples(HARD))
    ast.parse(python)
    said = subprocess.run(["sh", "-nc", curl], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    echoed = subprocess.run(["sh", "-c", curl.replace("curl", "printf '%s\\n'", 1)], capture_output=True, text=True)
    assert HARD.json in echoed.stdout
    for program, code in (("php", f"<?php {php}"), ("node", f"(async () => {{ {node} }})")):
        found = shutil.which(program)
        assert found is not None
        check = [found, "-l"] if program == "php" else [found, "--check", "-"]
        checked = subprocess.run(check, input=code, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr


async def test_the_page_shows_them(web: httpx.AsyncClient) -> None:
    page = (await web.get("/api/docs")).text
    assert page.count("<summary>Node</summary>") == page.count("<summary>Answer</summary>") > 20
    assert "/sandbox/api/v1/charges" in page
