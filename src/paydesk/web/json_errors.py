"""Errors as programs read them: a JSON object with exactly these keys (interface.md §8.2)."""

from __future__ import annotations

from starlette.responses import JSONResponse

from paydesk.core.errors import PaydeskError


def error_json(error: PaydeskError) -> JSONResponse:
    """The fixed shape of an error, with its status and, where that is known, when to try again."""
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after is not None else {}
    return problem_json(error.status, error.message, headers)


def problem_json(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """The fixed shape for a status and a message."""
    body = {"success": False, "type": "error", "message": message, "code": status}
    return JSONResponse(body, status, headers={"Cache-Control": "no-store", **(headers or {})})
