"""The headers of every page: what it may use (its Content-Security-Policy), who may frame it,
what it tells other sites, and that nobody stores it.
"""

from __future__ import annotations

REPORTS = "/policy-reports"
"""Where browsers report what a page's policy has kept from being used."""

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def page_headers(form_action: str = "") -> dict[str, str]:
    """The headers of a page whose forms may lead to `form_action`, too."""
    return {**_HEADERS, "Content-Security-Policy": _content_security_policy(form_action)}


def _content_security_policy(form_action: str = "") -> str:
    """A policy that lets a page use nothing but its own files and data images,
    and says where violations are reported.

    By `report-uri` alone, which all browsers send at once: those that know `report-to` would send
    nothing but that, a minute later or, without https or the page, never.

    `form_action` holds more sources (separated by spaces) that a form's answer may redirect to:
    Chromium applies `form-action` to the redirects after a post, so a shop's thank-you page must
    be named.
    """
    sources = " ".join(source for source in form_action.split() if not set(source) & set(";,'\""))
    return (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        f"base-uri 'none'; frame-ancestors 'none'; report-uri {REPORTS}; "
        f"form-action 'self' {sources}"
    ).rstrip()
