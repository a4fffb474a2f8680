"""Why a hash may be wrong: tries the mistakes that programmers make,
for the error page of test mode.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_plus

from paydesk.domain.merchants.refused_forms import PRIVATE_KEY
from paydesk_client.signature import Budget, MalformedForm, Value, Version, canonical_string, sign, verify

_MOST_WORK = 4_000_000
"""For all guesses at one form's mistake together, in the units of `Budget`:
some hundredths of a second."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`hashed` is the very string that was hashed, without the private key;
    `suspect` says what differs most likely.
    """

    hashed: str
    suspect: str


def hashed_string(form: dict[str, Value], private_key: str, version: Version) -> str:
    """The string of which the hash is made, without the key, which is masked wherever it stands in
    the form itself.
    """
    signed = {name: value for name, value in form.items() if name != "hash"}
    return canonical_string(signed, version).replace(private_key, PRIVATE_KEY)


def diagnose(
    form: dict[str, Value], given: str, private_key: str, version: Version, others: Sequence[tuple[str, str]] = ()
) -> Diagnosis:
    """Find the mistake that explains a wrong hash, or else say where to look.
    Never reveals a key; `others` are the (public, private) pairs of the same account.
    """
    signed = {name: value for name, value in form.items() if name != "hash"}
    hashed = hashed_string(form, private_key, version)
    for _, other in others:
        hashed = hashed.replace(other, PRIVATE_KEY)
    budget = Budget(_MOST_WORK)
    if verify(form, given, _text_of(form, "api_key"), version, budget):
        return Diagnosis(hashed, "the key: the hash was computed with the public key instead of the private key")
    by = _other_key(form, given, private_key, version, others, budget)
    if by:
        return Diagnosis(hashed, by)
    for explanation, variant, its_version in _mistakes(signed, version):
        if not budget.left:
            break
        if _explains(variant, given, private_key, its_version, budget):
            return Diagnosis(hashed, explanation)
    return Diagnosis(hashed, _without_explanation(signed, given, version))


def _other_key(
    form: dict[str, Value],
    given: str,
    private_key: str,
    version: Version,
    others: Sequence[tuple[str, str]],
    budget: Budget,
) -> str:
    """Which key of the same account it was signed with instead, or what stood beside the key."""
    for written in (f"{private_key}\n", f"{private_key}\r\n", f" {private_key}", f"{private_key} "):
        if verify(form, given, written, version, budget):
            return "the private key: it was used with a space or a line break beside it"
    for public, private in others:
        if private != private_key and verify(form, given, private, version, budget):
            return (
                f"the pair: the hash was computed with the private key of another pair of this account, whose public "
                f"key is {public}; sign with the private key that belongs to the posted api_key"
            )
    return ""


def _explains(variant: dict[str, Value], given: str, private_key: str, version: Version, budget: Budget) -> bool:
    """Whether the hash is right for what a mistake would have made of the form;
    nothing signs what reads two ways.
    """
    try:
        return bool(verify(variant, given, private_key, version, budget))
    except MalformedForm:
        return False


def _text_of(form: dict[str, Value], name: str) -> str:
    value = form.get(name)
    return value if isinstance(value, str) else ""


def _mistakes(signed: dict[str, Value], version: Version) -> Iterator[tuple[str, dict[str, Value], Version]]:
    other: Version = "v1" if version == "v2" else "v2"
    yield f"the hash was computed by the rules of {other}, but the form asks for {version}", signed, other
    if "sign_version" in signed:
        yield (
            "the hash was computed before sign_version was added; sign the fields exactly as they are posted",
            {name: value for name, value in signed.items() if name != "sign_version"},
            version,
        )
    for name, value in signed.items():
        rest = {key: kept for key, kept in signed.items() if key != name}
        yield f'"{name}" was added after the hash was computed, or left out of it', rest, version
        if isinstance(value, str):
            for what, text in _other_writings(value):
                if text != value:
                    yield f'"{name}" was {what} between hashing and posting', {**signed, name: text}, version


def _other_writings(value: str) -> Iterator[tuple[str, str]]:
    yield "trimmed or padded with spaces", value.strip()
    yield "HTML-escaped", html.unescape(value)
    yield "HTML-unescaped", html.escape(value)
    yield "URL-encoded twice", unquote_plus(value)
    yield "changed in its line breaks", value.replace("\r\n", "\n")
    yield "reformatted (trailing zeros)", value.rstrip("0").rstrip(".") if "." in value else f"{value}.00"
    yield "reformatted (a trailing zero)", value.removesuffix("0")
    yield "changed from lower to upper case", value.lower()
    yield "changed from upper to lower case", value.upper()


def _without_explanation(signed: dict[str, Value], given: str, version: Version) -> str:
    if len(given) != len(sign(signed, "", version)):
        return "the hash itself: expected 64 hexadecimal digits (SHA-256)"
    unusual = [
        name for name, value in signed.items() if not isinstance(value, str) or not value.isascii() or "+" in value
    ]
    if unusual:
        return (
            f'"{unusual[0]}", which has characters or a shape that are easily encoded in two ways; or another value '
            "that was changed after signing; or the private key"
        )
    return (
        "a value that was changed after signing (compare each with what your server signed), or a private key that is "
        "of another account"
    )
