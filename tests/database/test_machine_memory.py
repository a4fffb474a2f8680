"""How much memory the embedded server takes: a part of what there is for us."""

from __future__ import annotations

from pathlib import Path

import pytest

from paydesk.database.embedded_settings import buffers_of
from paydesk.database.machine_memory import usable_memory

GIB = 2**30


@pytest.fixture(autouse=True)
def large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 64 * GIB // 4096}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)


def usable(folder: Path, groups: str, limits: dict[str, str]) -> int:
    (folder / "cgroup").write_text(groups)
    for name, limit in limits.items():
        file = folder / "mounts" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(limit)
    return usable_memory(folder / "cgroup", folder / "mounts")


def test_without_a_limit_all_of_the_machine_counts(tmp_path: Path) -> None:
    assert usable(tmp_path, "0::/\n", {"memory.max": "max\n"}) == 64 * GIB
    assert usable_memory(tmp_path / "no_such_file", tmp_path / "none") == 64 * GIB


def test_the_least_limit_counts_also_of_a_group_above(tmp_path: Path) -> None:
    limits = {
        "system.slice/memory.max": f"{4 * GIB}\n",
        "system.slice/paydesk.service/memory.max": f"{6 * GIB}\n",
        "other.slice/memory.max": f"{GIB}\n",
    }
    assert usable(tmp_path, "0::/system.slice/paydesk.service\n", limits) == 4 * GIB


def test_version_1_names_each_controller_and_has_a_number_for_no_limit(tmp_path: Path) -> None:
    groups = "9:name=systemd:/\n4:cpu,memory:/box\n1:cpu:/\n0::/\n"
    limits = {
        "memory/memory.limit_in_bytes": "9223372036854771712\n",
        "memory/box/memory.limit_in_bytes": f"{2 * GIB}\n",
    }
    assert usable(tmp_path, groups, limits) == 2 * GIB
    assert usable(tmp_path, groups, {"memory/box/memory.limit_in_bytes": "9223372036854771712\n"}) == 64 * GIB


def test_in_a_container_the_top_is_its_own_group(tmp_path: Path) -> None:
    groups = "4:memory:/docker/0123456789ab\n"
    assert usable(tmp_path, groups, {"memory/memory.limit_in_bytes": f"{GIB}\n"}) == GIB


@pytest.mark.parametrize(
    ("memory", "buffers"), [(GIB // 4, 128), (2 * GIB, 128), (8 * GIB, 512), (24 * GIB, 1536), (512 * GIB, 2048)]
)
def test_a_sixteenth_is_for_pages_within_bounds(memory: int, buffers: int) -> None:
    assert buffers_of(memory) == buffers
