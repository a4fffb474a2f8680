"""Another value for a limit, in every module that has taken it."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import Any

import pytest


def change(monkeypatch: pytest.MonkeyPatch, module: str, name: str, value: object) -> None:
    """Change a constant for a test where it stands, and in all modules that imported it under
    its name.
    """
    before = getattr(importlib.import_module(module), name)
    for loaded in [each for called, each in sys.modules.items() if called.split(".")[0] == "paydesk"]:
        if getattr(loaded, name, None) is before:
            monkeypatch.setattr(loaded, name, value)


def said_with(module: str, change: str, says: str) -> Any:
    """What Python says that starts now: it changes a constant of `module`, then takes the value
    of `says`.

    For words that are put together while their modules are read, where it would be too late
    for `change`.
    """
    program = f"import json, sys\nfrom datetime import timedelta\nimport {module} as limits\n{change}\n{says}"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)
