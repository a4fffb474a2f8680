"""What the roles of a team are called, in mails and in the consoles alike."""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.domain.accounts.roles import Role
from paydesk.web.texts import mark

ROLE_NAMES: Mapping[Role, str] = {
    Role.owner: mark("Owner"),
    Role.developer: mark("Developer"),
    Role.support: mark("Support"),
    Role.viewer: mark("Viewer"),
}
"""It stands with the mails, since theirs is the catalogue that translates these words."""
