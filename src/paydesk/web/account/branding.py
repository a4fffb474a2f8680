"""How the checkout page looks: an accent colour that people can read, and a logo."""

from __future__ import annotations

from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business import branding
from paydesk.web.account.face import FACE
from paydesk.web.brands import brand_address
from paydesk.web.console.forms import read_upload
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.visit import Visit

section = Section(FACE)
_BRANDING = "/account/{merchant_id}/settings/branding"
OURS = "#1746a2"


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
        ours=OURS,
        largest=branding.LARGEST_LOGO // 1024,
        errors=errors or {},
    )


@section.action(_BRANDING, needs=Permission.manage_settings, read=read_upload)
async def save(visit: Visit) -> Response:
    """Take colour and logo."""
    accent = visit.form.text("accent", 40)
    try:
        await branding.save_branding(
            visit.gate,
            visit.session,
            accent=accent,
            logo=visit.form.files.get("logo", b""),
            remove_logo=visit.form.has("remove_logo"),
            now=visit.now,
        )
    except Malformed as error:
        return await _page(visit, field_errors(error, "accent", "logo"), accent, error.status)
    return visit.go(visit.url("settings/branding"), visit.texts.get("Saved. Your checkout page has it at once."))
