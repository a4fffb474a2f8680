"""Files form no import circle: whoever reads one and what it needs comes to an end.

Nor do the packages of a package: what stands beside each other in a folder has an order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """All files; imports for types alone count, and so does the `__init__` of a package."""
    return grimp.build_graph("paydesk", cache_dir=None)


def refuse_circles(imports: Mapping[str, set[str]]) -> None:
    order = TopologicalSorter(imports)
    try:
        order.prepare()
    except CycleError as circle:
        raise AssertionError(" imports ".join(reversed(circle.args[1]))) from None


def test_files_form_no_import_circle(graph: grimp.ImportGraph) -> None:
    refuse_circles({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})


def test_what_stands_beside_each_other_in_a_folder_forms_no_circle(graph: grimp.ImportGraph) -> None:
    beside: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            mine, theirs = module.split("."), other.split(".")
            shared = next((at for at, pair in enumerate(zip(mine, theirs, strict=False)) if len(set(pair)) > 1), 0)
            if shared:
                beside[".".join(mine[:shared])][mine[shared]].add(theirs[shared])
    for imports in beside.values():
        refuse_circles(imports)
