"""What the account calls things: languages, actions of the audit log, browsers."""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.domain.accounts.audit import Action
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

_ACTIONS: dict[Action, str] = {
    Action.signed_up: mark("Opened an account"),
    Action.logged_in: mark("Logged in"),
    Action.log_in_failed: mark("Log-in failed"),
    Action.confirmed_password: mark("Confirmed the password"),
    Action.email_changed: mark("Changed the e-mail address"),
    Action.email_change_asked: mark("Asked to change the e-mail address"),
    Action.email_confirmed: mark("Confirmed the e-mail address"),
    Action.second_factor_failed: mark("Second factor failed"),
    Action.merchant_opened: mark("Opened the shop"),
    Action.test_mode_changed: mark("Switched test mode"),
    Action.test_clock_moved: mark("Moved the test clock"),
    Action.go_live_asked: mark("Asked to go live"),
    Action.profile_change_asked: mark("Proposed another profile"),
    Action.profile_change_withdrawn: mark("Took the proposed profile back"),
    Action.profile_change_approved: mark("Accepted the proposed profile"),
    Action.profile_change_refused: mark("Refused the proposed profile"),
    Action.card_guard_changed: mark("Changed the limits against card testing"),
    Action.card_pause_lifted: mark("Lifted a pause for card testing"),
    Action.card_tries_forgotten: mark("Forgot the tries with test cards"),
    Action.acquirer_added: mark("Added an account at an acquirer"),
    Action.acquirer_changed: mark("Changed an account at an acquirer"),
    Action.hold_accepted: mark("Lifted the hold, and took what was left"),
    Action.purchase_given_back: mark("Gave back a purchase that our books don't have"),
    Action.searched: mark("Searched over all merchants"),
    Action.customer_looked_at: mark("Looked at what a customer did"),
}
"""The names of actions; an action that is not among them is called as it is written."""


def action_name(action: Action) -> str:
    """What an action is called, to be translated."""
    return _ACTIONS.get(action) or action.replace("_", " ").capitalize()
