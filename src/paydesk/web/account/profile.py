"""The business profile, and the request to go live."""

from __future__ import annotations

from dataclasses import asdict

from babel import Locale
from starlette.responses import Response

from paydesk.core.errors import Malformed, PaydeskError
from paydesk.domain.accounts.access_needs import ConfirmationNeeded
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business import profile_changes, profiles
from paydesk.domain.business.profile_changes import ChangeStatus
from paydesk.domain.business.profile_details import REQUIRED, STEPS, Details, parse_details
from paydesk.domain.business.profiles import Profile, ProfileStatus
from paydesk.web.account.face import FACE
from paydesk.web.console.guards import Section
from paydesk.web.console.problems import error_words, sentence
from paydesk.web.console.profile_names import NAMES
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_PROFILE = "/account/{merchant_id}/settings/profile"
_WRITTEN = (ProfileStatus.draft, ProfileStatus.refused)
"""While it is being written a profile is saved step by step;
what is accepted is changed as a whole."""
TITLES = {
    "business": mark("The business"),
    "address": mark("Address"),
    "support": mark("Support for your customers"),
    "bank": mark("Bank account for payouts"),
}
"""What the steps of `STEPS` are called."""
_SAVED = mark("Saved.")
_PROPOSED = mark("Your change waits for us. Until we have looked at it, what is accepted stays in force.")


@section.page(_PROFILE, needs=Permission.manage_settings)
async def show_profile(visit: Visit) -> Response:
    """The form, what is missing for going live, and where the request stands."""
    return await _page(visit)


async def _page(
    visit: Visit, details: Details | None = None, errors: dict[str, str] | None = None, status: int = 200
) -> Response:
    profile = await profiles.find_profile(visit.database, visit.merchant_id)
    change = await profile_changes.newest_change(visit.database, visit.merchant_id)
    missing = [visit.texts.get(NAMES[name]) for name in profile.missing]
    waits = change is not None and change.waits
    locked = waits or profile.status == ProfileStatus.submitted
    step = _step(visit, profile)
    return visit.part(
        "profile.html",
        "standing",
        status=status,
        profile=profile,
        change=change,
        changes=ChangeStatus,
        differences=change.differences(profile) if change is not None and waits else [],
        locked=locked,
        steps=_steps(visit, profile),
        step=step,
        shown=({name for name, fields in STEPS.items() if any(map(visit.form.has, fields))} or {step})
        if profile.status in _WRITTEN
        else set(STEPS),
        details=details or profile.details,
        names={name: visit.texts.get(text) for name, text in NAMES.items()},
        missing=missing,
        countries=_countries(visit.texts.language),
        required=(*REQUIRED, "iban"),
        errors=errors or {},
        states=ProfileStatus,
    )


def _step(visit: Visit, profile: Profile) -> str:
    """The step that is asked for or was sent, else the first of which something is missing,
    else the first.
    """
    asked = visit.form.text("step", 20)
    unfinished = [name for name, fields in STEPS.items() if set(fields) & set(profile.missing)]
    return asked if asked in STEPS else next(iter([*unfinished, *STEPS]))


def _steps(visit: Visit, profile: Profile) -> list[tuple[str, str, bool]]:
    """Each step's name and title, and whether all that it must have is said."""
    return [
        (name, visit.texts.get(TITLES[name]), not set(fields) & set(profile.missing)) for name, fields in STEPS.items()
    ]


def _countries(language: str) -> list[tuple[str, str]]:
    """Code and name of each country, in alphabetical order, after a line for none."""
    names = Locale.parse(language, sep="-").territories
    named = [
        (code, name) for code, name in names.items() if len(code) == 2 and code.isalpha() and code not in _NO_COUNTRY
    ]
    return [("", "–"), *sorted(named, key=lambda pair: pair[1])]


_NO_COUNTRY = {"EU", "EZ", "UN", "XA", "XB", "ZZ", "QO"}


@section.action(_PROFILE, needs=Permission.manage_settings)
async def save(visit: Visit) -> Response:
    """Keep what the form has, or propose it if a profile is accepted;
    what is wrong stands in the form with the reason.
    """
    typed = {name: visit.form.text(name, 3000) for name in NAMES if visit.form.has(name)}
    # Some countries' account numbers look like a card's; it rests sealed.
    iban = visit.form.raw("iban").strip()[:3000]
    details, errors = parse_details(typed)
    if details.country and details.country not in dict(_countries("en")):
        errors["country"] = "choose a country of the list"
    if errors:
        return await _page(visit, details, {name: sentence(visit.texts, text) for name, text in errors.items()}, 400)
    said = {name: text for name, text in asdict(details).items() if name in typed}
    try:
        proposed = await profile_changes.keep_profile(visit.gate, visit.session, said, iban=iban, now=visit.now)
    except ConfirmationNeeded:
        raise
    except Malformed as error:
        wrong = dict.fromkeys(error.fields or ("",), error_words(visit.texts, error))
        return await _page(visit, details, wrong, error.status)
    return visit.go(visit.url("settings/profile"), visit.texts.get(_PROPOSED if proposed else _SAVED))


@section.action(f"{_PROFILE}/submit", needs=Permission.go_live)
async def submit(visit: Visit) -> Response:
    """Ask to go live."""
    try:
        await profiles.submit_profile(visit.gate, visit.session, now=visit.now)
    except PaydeskError as error:
        return await _page(visit, errors={"": error_words(visit.texts, error)}, status=error.status)
    return visit.go(
        visit.url("settings/profile"), visit.texts.get("Your request is with us. The answer will stand here.")
    )


@section.action(f"{_PROFILE}/withdraw", needs=Permission.go_live)
async def withdraw(visit: Visit) -> Response:
    """Take the request back, to change something."""
    await profiles.withdraw_profile(visit.gate, visit.session, now=visit.now)
    return visit.go(visit.url("settings/profile"), visit.texts.get("You can change the profile again."))


@section.action(f"{_PROFILE}/withdraw-change", needs=Permission.manage_settings)
async def withdraw_change(visit: Visit) -> Response:
    """Take a proposed change back."""
    await profile_changes.withdraw_change(visit.gate, visit.session, now=visit.now)
    return visit.go(visit.url("settings/profile"), visit.texts.get("Taken back. What is accepted stays in force."))
