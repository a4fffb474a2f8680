"""How the checkout page looks: an accent colour that people can read, and a logo.

Beside the form stand the page and a mail in small, as they look with what is saved, and, where
scripts run, with what is being chosen: the colours of these come in a stylesheet of their own.
"""

from __future__ import annotations

from decimal import Decimal
from urllib.parse import urlencode

from starlette.responses import PlainTextResponse, Response

from paydesk.core.errors import Malformed
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business import branding
from paydesk.domain.business.colours import dark_shades, light_shades, parse_accent
from paydesk.web.account.face import FACE
from paydesk.web.brands import brand_address
from paydesk.web.console.forms import read_upload
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.problems import error_words
from paydesk.web.console.visit import Visit

section = Section(FACE)
_BRANDING = "/account/{merchant_id}/settings/branding"
OURS = "#1746a2"
_BOXES = ("remove_logo", "remove_dark_logo")
_SAMPLE = Decimal("24.90"), "EUR"
_AS_IT_IS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


@section.page(_BRANDING, needs=Permission.manage_settings)
async def show_branding(visit: Visit) -> Response:
    """The form, with what is chosen now."""
    return await _page(visit)


async def _page(visit: Visit, errors: dict[str, str] | None = None, typed: str = "", status: int = 200) -> Response:
    chosen = await branding.find_branding(visit.database, visit.merchant_id)
    return visit.page(
        "branding.html",
        status=status,
        chosen=chosen,
        accent=typed or chosen.accent,
        place=brand_address(visit.merchant_id, chosen.changed_at),
        shades=_shades_address(visit, "" if errors else chosen.accent),
        ours=OURS,
        sample=visit.money(*_SAMPLE),
        largest=branding.LARGEST_LOGO // 1024,
        errors=errors or {},
    )


def _shades_address(visit: Visit, accent: str) -> str:
    return f"{visit.url('settings/branding/shades.css')}?{urlencode({'accent': accent})}"


@section.action(_BRANDING, needs=Permission.manage_settings, read=read_upload)
async def save(visit: Visit) -> Response:
    """Take colour and logo."""
    accent = visit.form.text("accent", 40)
    try:
        visit.form.require_only("accent", "logo", "dark_logo", boxes=_BOXES)
        await branding.save_branding(
            visit.gate,
            visit.session,
            accent=accent,
            logo=_choice(visit, "logo"),
            dark_logo=_choice(visit, "dark_logo"),
            now=visit.now,
        )
    except Malformed as error:
        return await _page(
            visit, field_errors(visit, error, "accent", "logo", "dark_logo", *_BOXES), accent, error.status
        )
    return visit.go(visit.url("settings/branding"), visit.texts.get("Saved. Your checkout page has it at once."))


def _choice(visit: Visit, name: str) -> branding.LogoChoice:
    return branding.LogoChoice(visit.form.files.get(name, b""), visit.form.has(f"remove_{name}"))


@section.page(f"{_BRANDING}/shades.css", needs=Permission.manage_settings)
async def show_shades(visit: Visit) -> Response:
    """The colours of the pages in small: those of `accent`, else none, which leaves ours."""
    accent = visit.form.text("accent", 40)
    try:
        style = _shades(parse_accent(accent)) if accent else ""
    except Malformed as error:
        return PlainTextResponse(error_words(visit.texts, error), error.status, headers=_AS_IT_IS)
    return Response(style, media_type="text/css", headers=_AS_IT_IS)


def _shades(accent: str) -> str:
    grounds = {"light": light_shades(accent), "dark": dark_shades(accent)}
    rules = (
        f".minis .mini.{ground} {{ --accent: {one.accent}; --on-accent: {one.on_accent}; }}\n"
        for ground, one in grounds.items()
    )
    return "".join(rules)
