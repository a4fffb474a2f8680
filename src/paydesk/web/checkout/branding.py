"""A merchant's own colour and logo, from our own origin: the page's policy allows nothing else.

Both addresses carry when the choice was made, so that browsers may keep what they got.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from paydesk.core.errors import NotFound
from paydesk.core.paging import LARGEST_ID
from paydesk.domain.business.branding import find_branding, find_logo
from paydesk.domain.business.colours import Shades, dark_shades, light_shades
from paydesk.web.checkout.services import CheckoutServices
from paydesk.web.ids import id_in_path

_KEPT = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
_LOGO = ".shop img { inline-size: auto; max-inline-size: 10rem; block-size: 2rem; object-fit: contain; }\n"
_DARK_LOGO = ".shop img { content: url(logo-dark); } "


async def show_style(request: Request) -> Response:
    """The accent on light and dark pages, in place of ours."""
    branding = await find_branding(CheckoutServices.of(request).desk.database, _merchant_id(request))
    style = _LOGO
    dark = _DARK_LOGO if branding.has_dark_logo else ""
    if branding.accent:
        style += _rule(light_shades(branding.accent))
        dark += _rule(dark_shades(branding.accent))
    if dark:
        style += f"@media (prefers-color-scheme: dark) {{ {dark} }}\n"
    return Response(style, media_type="text/css", headers=_KEPT)


def _rule(shades: Shades) -> str:
    return (
        f":root {{ --accent: {shades.accent}; --accent-strong: {shades.strong}; --on-accent: {shades.on_accent}; }}\n"
    )


async def show_logo(request: Request) -> Response:
    """The logo, as the kind of picture that it is; a browser that opens it alone runs nothing."""
    try:
        database, dark = CheckoutServices.of(request).desk.database, request.url.path.endswith("-dark")
        logo = await find_logo(database, _merchant_id(request), dark=dark)
    except NotFound:
        return PlainTextResponse("Not Found", 404)
    policy = {"Content-Security-Policy": "default-src 'none'; sandbox"}
    return Response(logo.content, media_type=logo.media_type, headers={**_KEPT, **policy})


def _merchant_id(request: Request) -> int:
    return min(int(request.path_params["merchant_id"]), LARGEST_ID)


routes = [
    Route(f"/brand/{id_in_path('merchant_id')}/{{chosen}}/style.css", show_style, methods=["GET"]),
    Route(f"/brand/{id_in_path('merchant_id')}/{{chosen}}/logo", show_logo, methods=["GET"]),
    Route(f"/brand/{id_in_path('merchant_id')}/{{chosen}}/logo-dark", show_logo, methods=["GET"]),
]
