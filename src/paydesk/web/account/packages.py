"""Packages that are made in the account, and other versions of them for new customers."""

from __future__ import annotations

from starlette.responses import Response

from paydesk.core.errors import Conflict, Malformed
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business.packages_for_team import FIELDS, TypedPackage, add_package, add_version, as_typed
from paydesk.domain.business.payment_links import list_pages
from paydesk.domain.business.subscriptions_for_team import list_package_versions
from paydesk.domain.subscriptions.packages import MadeVersion
from paydesk.web.account.face import FACE
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.problems import error_words
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_PACKAGES = "/account/{merchant_id}/subscriptions/packages"
_VERSION = f"{_PACKAGES}/{{package_id}}/version"
_UNITS = (("d", mark("days")), ("w", mark("weeks")), ("m", mark("months")), ("y", mark("years")))


@section.page(f"{_PACKAGES}/new", needs=Permission.manage_settings)
async def show_new(visit: Visit) -> Response:
    """The form for another package."""
    return await _form(visit, TypedPackage())


@section.action(f"{_PACKAGES}/new", needs=Permission.manage_settings)
async def make(visit: Visit) -> Response:
    """Make it, and show it."""
    typed = _typed(visit)
    try:
        visit.form.require_only(*FIELDS)
        made = await add_package(visit.gate, visit.session, visit.shop, typed, now=visit.now)
    except (Malformed, Conflict) as error:
        errors = (
            {"sku_id": error_words(visit.texts, error)}
            if isinstance(error, Conflict)
            else field_errors(visit, error, *FIELDS)
        )
        return await _form(visit, typed, errors, error.status)
    return _shown(visit, made, visit.texts.get("The package is made. Your form sells it with these terms."))


@section.page(_VERSION, needs=Permission.manage_settings)
async def show_new_version(visit: Visit) -> Response:
    """The form for another version, filled in with the newest."""
    versions = await list_package_versions(visit.database, visit.shop, visit.number("package_id"))
    return await _form(visit, as_typed(versions[0].package.terms))


@section.action(_VERSION, needs=Permission.manage_settings)
async def make_version(visit: Visit) -> Response:
    """Make it, and show the versions."""
    typed, package_id = _typed(visit), visit.number("package_id")
    on_pages = visit.form.has("on_pages")
    try:
        visit.form.require_only(*FIELDS, boxes=("on_pages",))
        made = await add_version(
            visit.gate, visit.session, visit.shop, package_id, typed, on_pages=on_pages, now=visit.now
        )
    except Malformed as error:
        return await _form(visit, typed, field_errors(visit, error, *FIELDS, "on_pages"), error.status)
    said = visit.texts.get("Version %(version)s is made. What runs stays on the version that it is on.")
    return _shown(visit, made, said % {"version": made.version_id})


def _shown(visit: Visit, made: MadeVersion, said: str) -> Response:
    """The package, once a version is made, or was found to be there."""
    if not made.fresh:
        said = visit.texts.get("Version %(version)s has just these terms already.") % {"version": made.version_id}
    return visit.go(visit.url(f"subscriptions/packages/{made.package_id}"), said, "success" if made.fresh else "info")


async def _form(visit: Visit, typed: TypedPackage, errors: dict[str, str] | None = None, status: int = 200) -> Response:
    """The form; with a package in the address, of another version of that."""
    of_package = visit.number("package_id") if "package_id" in visit.request.path_params else None
    return visit.page(
        "package_new.html",
        status=status,
        typed=typed,
        of_package=of_package,
        pages=await list_pages(visit.database, visit.shop, of_package) if of_package is not None else [],
        on_pages=visit.form.has("on_pages"),
        units=[(unit, visit.texts.get(name)) for unit, name in _UNITS],
        errors=errors or {},
    )


def _typed(visit: Visit) -> TypedPackage:
    texts = {name: visit.form.text(name, 1000 if name in {"name", "sku_id"} else 40) for name in FIELDS}
    return TypedPackage(**texts | {"currency": texts.get("currency", "").upper()})
