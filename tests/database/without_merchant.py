"""Which statements are given no merchant, as their SQL says, and the list that says why of each.

`python -m tests.database.without_merchant` writes what the list comes to into the docs.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import fill

from tests.database.statements import SOURCE, Name, Statement, all_statements

LIST = Path(__file__).with_name("statements_without_merchant.toml")
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
WIDTH = 88
MARKED = re.compile(
    r"(<!-- Made from a list by: \.venv/bin/python -m tests\.database\.without_merchant -->\n).*?"
    r"(<!-- /statements without a merchant -->)",
    re.S,
)

KINDS = {
    "operator": "asked by console or command, about all merchants of a cell; with several cells, in each of them",
    "worker": "claims, housekeeping, metrics and kept sums: each cell's own processes do it for its own merchants",
    "directory": "finds out whose something is: what knows all merchants must be asked first, and leads to the cell",
    "nobody": "no merchant's business: schema, clocks, locks, the database's history, people and their sessions",
    "change": "would be wrong with merchants in several cells, for the reason below",
}
"""Why a statement may be given no merchant, or must not stay as it is."""
NAMED = ("directory", "change")
"""The kinds whose statements the page names."""

GIVEN = re.compile(r"(?:for_)?merchant_ids?")
"""How a parameter is called that is a merchant, or several."""
_ROWS = re.compile(
    r"""jsonb_populate_record(set)?\(null::\w+      # a row of a table, whose merchant it has
    |jsonb_to_recordset\(:\w+(::jsonb)?\)\s+as\s+(\w+\s+)?\(merchant_id\s""",
    re.X,
)


def names_merchant(statement: Statement) -> bool:
    """Whether a statement is told whose rows it is about: by a parameter that is a merchant and may
    not be null (then it means all of them), or in each row of its JSON.
    """
    return bool(_ROWS.search(statement.written)) or any(
        GIVEN.fullmatch(name) and not _may_be_null(name, statement.written) for name in statement.parameters
    )


def _may_be_null(parameter: str, written: str) -> bool:
    is_null = r"(::\w+(\[\])?)?\s+is\s+(not\s+)?null"
    other_asked = rf":\w+{is_null}\s+or\s+([a-z]\w*\.)?merchant_id\s*=\s*(any\()?:{parameter}\b"
    return bool(re.search(rf":{parameter}{is_null}|{other_asked}", written))


def without_merchant() -> set[str]:
    """The statements that are given no merchant."""
    return {title(name) for name, statement in all_statements().items() if not names_merchant(statement)}


def title(name: Name) -> str:
    """A statement by its file below the service, and its name."""
    return f"{name[0].relative_to(SOURCE).as_posix()}: {name[1]}"


@dataclass(frozen=True)
class Group:
    """Statements of one file that are given no merchant for the same reason."""

    file: str
    kind: str
    why: str
    names: tuple[str, ...]

    @property
    def titles(self) -> list[str]:
        """Its statements as `title` says them."""
        return [f"{self.file}: {name}" for name in self.names]


@cache
def listed() -> list[Group]:
    """The list, in its order."""
    return [
        Group(file, each["kind"], each["why"], tuple(each["names"]))
        for file, groups in tomllib.loads(LIST.read_text()).items()
        for each in groups
    ]


def kind_of() -> dict[str, str]:
    """The kind of each statement of the list."""
    return {one: group.kind for group in listed() for one in group.titles}


def summary() -> str:
    """What the list comes to, as the page says it."""
    counts = Counter(kind_of().values())
    lines = [f"| `{kind}` | {counts[kind]} | {means} |" for kind, means in KINDS.items()]
    lines = ["| kind | statements | what it is |", "|---|---|---|", *lines]
    for kind in NAMED:
        lines += ["", f"Of the kind `{kind}` are:", "", *_named(kind)]
    return "\n".join(lines)


def _named(kind: str) -> list[str]:
    """The statements of a kind, those with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for group in listed():
        if group.kind == kind:
            file = group.file.removeprefix("domain/")
            reasons.setdefault(group.why, []).append(f"{', '.join(f'`{name}`' for name in group.names)} (`{file}`)")
    return [
        fill(
            f"- {', '.join(names)}: {why}.",
            WIDTH,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for why, names in reasons.items()
    ]


if __name__ == "__main__":
    PAGE.write_text(MARKED.sub(lambda found: f"{found[1]}\n{summary()}\n\n{found[2]}", PAGE.read_text()))
