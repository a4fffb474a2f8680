"""What the account calls things: languages, and what roles may do."""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.domain.accounts.roles import Role
from paydesk.web.texts import mark

LANGUAGES = (
    ("en", "English"),
    ("de", "Deutsch"),
    ("fr", "Français"),
    ("es", "Español"),
    ("pt", "Português"),
    ("it", "Italiano"),
    ("pl", "Polski"),
    ("tr", "Türkçe"),
    ("vi", "Tiếng Việt"),
    ("ja", "日本語"),
    ("zh", "中文"),
    ("ar", "العربية"),
)

ROLES: Mapping[Role, str] = {
    Role.owner: mark("Everything, also team, payouts and settings"),
    Role.developer: mark("Keys, pingbacks, test clock, and seeing everything else; no refunds"),
    Role.support: mark("Refunds, cancelling subscriptions, deliveries, resending pingbacks"),
    Role.viewer: mark("Sees figures and lists, changes nothing"),
}
"""What each role may do, in few words."""
