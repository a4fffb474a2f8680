import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_LINES = 2


def test_a_docstring_begins_with_one_sentence() -> None:
    """The summary stands on one line or two; what is more to say follows after an empty line."""
    long = [
        f"{file.relative_to(ROOT)}:{node.body[0].lineno}"
        for room in ("src", "bench")
        for file in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if len((ast.get_docstring(node) or "").partition("\n\n")[0].splitlines()) > MOST_LINES
    ]
    assert long == []
