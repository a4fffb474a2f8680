"""Turn a door's Jinja templates into responses that a browser handles with care."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined, Template
from jinja2.bccache import Bucket
from starlette.responses import HTMLResponse

from paydesk.web.assets import asset_integrity, asset_url
from paydesk.web.kept_pages import KeptPages
from paydesk.web.page_headers import page_headers
from paydesk.web.texts import Texts

_SHARED = Path(__file__).parent / "templates"
"""Pieces that several doors build their pages from; each has their texts in its catalogue."""

_INDENTATION = re.compile(r"^[ \t]+", re.MULTILINE)


class _LeanLoader(FileSystemLoader):
    """Loads templates without their indentation, which would be a tenth of a page's weight."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        source, filename, up_to_date = super().get_source(environment, template)
        return _INDENTATION.sub("", source), filename, up_to_date


class _Compiled(BytecodeCache):
    """What templates were compiled to in this process: the same for each language,
    and for each door.
    """

    def __init__(self) -> None:
        self._kept: dict[str, CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._kept.get(bucket.key)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if bucket.code is not None:
            self._kept[bucket.key] = bucket.code


_COMPILED = _Compiled()


def _kept_pieces() -> Callable[..., str]:
    """What templates of one language call as `once(name, macro, …)`: a piece that says the same to
    everybody is written once under its name, which has all that it hangs on.
    """
    kept: dict[object, str] = {}

    def once(name: object, macro: Callable[..., str], *given: object) -> str:
        if (found := kept.get(name)) is None:
            found = kept[name] = macro(*given)
        return found

    return once


class DoorTemplates:
    """The templates of one door, loaded once for each language."""

    def __init__(self, *folders: Path, macros: Mapping[str, str] | None = None, **known: object) -> None:
        """Read templates from the first of `folders` that has them, else the shared ones.

        All know `asset_url`, `asset_integrity`, `once`, gettext's functions, `known`, each template
        of `macros` by its name.
        """
        self._folders = folders
        self._macros = macros or {}
        self._known = known
        self._by_language: dict[str, Environment] = {}
        self.kept = KeptPages()

    def render(self, template: str, texts: Texts, /, **values: object) -> str:
        """The template filled in with `texts` and what is given by name;
        a missing value is an error.
        """
        return self._find(template, texts).render(texts=texts, **values)

    def render_block(self, template: str, block: str, texts: Texts, /, **values: object) -> str:
        """One block of the template alone, for a page that updates a part of itself.

        Raises: KeyError.
        """
        found = self._find(template, texts)
        return "".join(found.blocks[block](found.new_context({"texts": texts, **values})))

    def _find(self, template: str, texts: Texts) -> Template:
        environment = self._by_language.get(texts.language) or self._environment(texts)
        return environment.get_template(template)

    def _environment(self, texts: Texts) -> Environment:
        environment = Environment(
            loader=_LeanLoader([*self._folders, _SHARED]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            auto_reload=False,
            extensions=["jinja2.ext.i18n"],
            bytecode_cache=_COMPILED,
        )
        environment.policies["ext.i18n.trimmed"] = True
        environment.globals.update(
            asset_url=asset_url, asset_integrity=asset_integrity, once=_kept_pieces(), **self._known
        )
        # The extension adds this method while running, out of a type checker's sight.
        environment.install_gettext_translations(texts.translations, newstyle=True)  # type: ignore[attr-defined]
        for name, template in self._macros.items():
            environment.globals[name] = environment.get_template(template).module
        self._by_language[texts.language] = environment
        return environment


def secured(
    html: str, *, status: int = 200, form_action: str = "", headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    """A page that is never stored, never framed, runs no inline script
    and tells other sites nothing.
    """
    return HTMLResponse(html, status, headers={**page_headers(form_action), **(headers or {})})
