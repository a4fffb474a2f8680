"""URLs that strangers send: what is accepted, and how they go into headers without harm."""

from __future__ import annotations

import re
import string
from urllib.parse import SplitResult, quote, urlsplit

from paydesk.core.errors import Malformed
from paydesk.core.wording import worded

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]+\]")

WEB_SCHEMES = ("http", "https")

_SYSTEMS_OWN = frozenset(
    {
        # What a browser runs or reads itself.
        *("javascript", "livescript", "mocha", "vbscript", "data", "blob", "filesystem", "file", "about", "cid", "mid"),
        "chrome",
        *("view-source", "jar", "mhtml", "mk", "its", "res", "resource", "wyciwyg", "devtools", "feed", "pcast", "ws"),
        *("wss", "edge", "brave", "opera", "vivaldi", "microsoft-edge", "read", "urn", "ftp", "ftps", "sftp", "tftp"),
        # What an operating system hands to its own parts, or to any app that a link names.
        *(
            "intent",
            "android-app",
            "app-settings",
            "prefs",
            "market",
            "search",
            "search-ms",
            "shell",
            "hcp",
            "help",
            "disk",
        ),
        *("windowsdefender", "applescript", "workflow", "shortcuts", "tel", "telprompt", "sms", "smsto", "mms"),
        *("mmsto", "mailto", "callto", "sip", "sips", "facetime", "facetime-audio", "webcal", "addressbook", "message"),
        *("smb", "afp", "nfs", "cifs", "dav", "davs", "ldap", "ldaps", "telnet", "tn3270", "rlogin", "ssh", "vnc"),
        *(
            "rdp",
            "gopher",
            "news",
            "nntp",
            "snews",
            "onenote",
            "outlookfeed",
            "vscode",
            "vscode-insiders",
            "x-man-page",
        ),
    }
)
_SYSTEMS_OWN_BEGINNINGS = ("ms-", "chrome-", "moz-", "itms", "safari-", "x-apple", "com.apple", "com.microsoft")

# All of printable ASCII but the space: "exactly as given" holds for whatever a header can carry.
_MAY_STAND = string.punctuation


def front_page(url: str) -> str:
    """The first page of the site that a web address belongs to; empty for any other address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/" if parts.scheme in WEB_SCHEMES else ""


def check_url(url: str, field: str) -> str:
    """Make sure that a URL is absolute and harmless in a header; returns its scheme in lower case.

    Spaces and non-ASCII are accepted (`as_header` encodes them); control characters are not, nor,
    for http and https, a host that is none.

    Raises: Malformed, naming the field.
    """
    if _CONTROL.search(url):
        raise Malformed(worded("%(field)s contains a control character", field=field), field)
    match = _SCHEME.match(url)
    if match is None or len(url) == match.end():
        raise Malformed(
            worded('%(field)s must be an absolute URL, like "https://shop.example/thanks"', field=field), field
        )
    scheme = match[1].lower()
    try:
        parts = urlsplit(url)
    except ValueError as error:
        # An app's own address must come apart as well: pages look at its scheme.
        raise Malformed(worded("%(field)s has an impossible host or port", field=field), field) from error
    if scheme in WEB_SCHEMES:
        _check_web_address(url, parts, field)
    return scheme


def is_systems_own(scheme: str) -> bool:
    """Whether the browser or the operating system opens such addresses itself,
    so that they are no shop's or app's.
    """
    name = scheme.lower()
    return name in _SYSTEMS_OWN or name.startswith(_SYSTEMS_OWN_BEGINNINGS)


def _check_web_address(url: str, parts: SplitResult, field: str) -> None:
    try:
        host, _ = _ascii_host(parts.hostname or ""), parts.port
    except ValueError as error:
        raise Malformed(worded("%(field)s has an impossible host or port", field=field), field) from error
    if url[len(parts.scheme) :][:3] != "://" or not _HOST.fullmatch(f"[{host}]" if ":" in host else host):
        raise Malformed(worded('%(field)s needs a host, like "https://shop.example/thanks"', field=field), field)


def as_header(url: str) -> str:
    """The URL as it may stand in a `Location` header:
    unchanged but for percent-encoded spaces and non-ASCII.
    """
    return quote(url, safe=_MAY_STAND)


def source_of(url: str) -> str:
    """The URL's origin, or its scheme for an app's own, as a Content-Security-Policy names it."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    if scheme not in WEB_SCHEMES:
        return f"{scheme}:"
    host = _ascii_host(parts.hostname or "")
    port = f":{parts.port}" if parts.port else ""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}{port}"


def _ascii_host(host: str) -> str:
    return host if host.isascii() else host.encode("idna").decode()
