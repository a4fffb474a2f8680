"""The rooms of the house, as docs/architecture.md lists them:
from docstrings, and in the order of lint's contracts.

`python -m tests.docs.house` writes the list into the page.
"""

import ast
import re
import tomllib
from pathlib import Path
from textwrap import fill

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "architecture.md"
WIDTH = 90
MARKED = re.compile(r"(<!-- Made from docstrings and contracts by: [^\n]* -->\n).*?(<!-- /house -->)", re.S)


def contracts() -> list[dict[str, object]]:
    """Lint's contracts."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[dict[str, object]] = settings["tool"]["importlinter"]["contracts"]
    return found


def floors(container: str) -> list[list[str]]:
    """The rooms of a package, floor by floor from the top,
    as the layers of a contract name them.
    """
    for contract in contracts():
        layers = contract.get("layers")
        if isinstance(layers, list) and contract.get("containers", ["paydesk"]) == [container]:
            return [[name.strip().removeprefix(f"{container}.") for name in re.split(r"[|:]", one)] for one in layers]
    return []


def purpose(path: Path) -> str:
    """What a room or a file is for: the first sentence of its docstring."""
    said = ast.get_docstring(ast.parse((path / "__init__.py" if path.is_dir() else path).read_text()))
    return re.sub(r"\s+", " ", (said or "").partition("\n\n")[0]).rstrip(".")


def line(path: Path, depth: int, *, number: int | None = None) -> str:
    """One item of the list."""
    name = f"{path.name}/" if path.is_dir() else path.name
    floor = f" (floor {number})" if number is not None else ""
    lead = "  " * depth + "- "
    return fill(
        f"{lead}`{name}`{floor}: {purpose(path)}.",
        WIDTH,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )


def rooms(package: Path, *, but: frozenset[str] = frozenset()) -> list[Path]:
    """The packages inside a package, by name."""
    return sorted(path.parent for path in package.glob("*/__init__.py") if path.parent.name not in but)


def domain(package: Path) -> list[str]:
    """The rooms of the domain, each with the floor that it stands on, the ground floor being 0."""
    storeys = floors("paydesk.domain")
    if not storeys:
        return [line(room, 2) for room in rooms(package)]
    top = len(storeys) - 1
    return [
        line(package / name, 2, number=top - place) for place, names in enumerate(storeys) for name in sorted(names)
    ]


def house() -> str:
    """The whole list, from the top of the house to its ground."""
    package = SOURCE / "paydesk"
    listed = [line(SOURCE / "paydesk_client", 0), line(package, 0)]
    for names in floors("paydesk"):
        for name in names:
            room = package / name if (package / name).is_dir() else package / f"{name}.py"
            listed.append(line(room, 1))
            if name == "domain":
                listed += domain(room)
            elif room.is_dir():
                listed += [line(inner, 2) for inner in rooms(room)]
    return "\n".join(listed)


if __name__ == "__main__":
    PAGE.write_text(MARKED.sub(lambda found: f"{found[1]}\n{house()}\n\n{found[2]}", PAGE.read_text()))
