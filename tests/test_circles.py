"""Files form no import circle: whoever reads one and what it needs comes to an end."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp


def test_files_form_no_import_circle() -> None:
    """Imports for types alone count, and so does the `__init__` of a package."""
    graph = grimp.build_graph("paydesk", cache_dir=None)
    order = TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})
    try:
        order.prepare()
    except CycleError as circle:
        raise AssertionError(" imports ".join(reversed(circle.args[1]))) from None
