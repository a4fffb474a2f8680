"""What a process has loaded is not looked through for garbage; what comes is, once it is much."""

from __future__ import annotations

import subprocess
import sys

LOOKED = """
import gc
from paydesk.commands import loading

with loading.for_good():
    loaded = [{"one": number} for number in range(1000)]
looks = []
gc.callbacks.append(lambda phase, _: looks.append(phase))
kept = [[] for _ in range(loading.GARBAGE_AFTER // 2)]
print(any(one is loaded[500] for one in gc.get_objects()), len(looks))
kept += [[] for _ in range(loading.GARBAGE_AFTER)]
print(any(one is kept[500] for one in gc.get_objects()), len(looks) > 0)
"""


def test_what_is_loaded_stays_and_much_that_comes_is_looked_through() -> None:
    said = subprocess.run([sys.executable, "-c", LOOKED], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.split() == ["False", "0", "True", "True"]
