"""The schemes of an account's own apps, to which its customers are led without a button."""

from __future__ import annotations

import re
from collections.abc import Iterable

from paydesk.core.errors import Malformed
from paydesk.core.urls import WEB_SCHEMES, is_systems_own
from paydesk.core.wording import plural, worded

MOST = 10
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{1,63}")


def parse_app_schemes(names: Iterable[str]) -> tuple[str, ...]:
    """Schemes as they are kept: in lower case, sorted, each once;
    `shopapp`, `shopapp:` and `shopapp://` are the same.

    Raises: Malformed for one that is no app's own, and for too many.
    """
    schemes = sorted({name.strip().lower().partition(":")[0] for name in names} - {""})
    for scheme in schemes:
        if not _SCHEME.fullmatch(scheme) or scheme in WEB_SCHEMES or is_systems_own(scheme):
            raise Malformed(
                worded('"%(scheme)s" is not the scheme of an app of your own, like shopapp', scheme=scheme[:64]),
                "app_schemes",
            )
    if len(schemes) > MOST:
        raise Malformed(
            plural(
                "%(count)s scheme, and at most %(most)s are accepted",
                "%(count)s schemes, and at most %(most)s are accepted",
                count=len(schemes),
                most=MOST,
            ),
            "app_schemes",
        )
    return tuple(schemes)
