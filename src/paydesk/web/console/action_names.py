"""What the actions of the audit log are called, in the account and in the console alike."""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.domain.accounts.audit import Action
from paydesk.web.texts import mark

ACTION_NAMES: Mapping[Action, str] = {
    Action.signed_up: mark("Opened an account"),
    Action.logged_in: mark("Logged in"),
    Action.log_in_failed: mark("Log-in failed"),
    Action.logged_out: mark("Logged out"),
    Action.handed_over: mark("Went to another cell"),
    Action.session_ended: mark("Session ended"),
    Action.confirmed_password: mark("Confirmed the password"),
    Action.password_changed: mark("Changed the password"),
    Action.password_reset_asked: mark("Asked for a new password"),
    Action.password_reset: mark("Chose a new password"),
    Action.email_change_asked: mark("Asked to change the e-mail address"),
    Action.email_changed: mark("Changed the e-mail address"),
    Action.email_confirmed: mark("Confirmed the e-mail address"),
    Action.profile_changed: mark("Changed their profile"),
    Action.second_factor_added: mark("Set up a second factor"),
    Action.second_factor_removed: mark("Removed the second factor"),
    Action.second_factor_reset: mark("Second factor reset"),
    Action.second_factor_failed: mark("Second factor failed"),
    Action.recovery_code_used: mark("Used a recovery code"),
    Action.recovery_codes_renewed: mark("Made new recovery codes"),
    Action.operator_created: mark("Operator added"),
    Action.operator_removed: mark("Operator removed"),
    Action.merchant_opened: mark("Opened the shop"),
    Action.member_invited: mark("Invited somebody"),
    Action.invitation_withdrawn: mark("Withdrew an invitation"),
    Action.member_joined: mark("Joined the team"),
    Action.role_changed: mark("Changed a role"),
    Action.member_removed: mark("Removed somebody from the team"),
    Action.key_shown: mark("Looked at a key"),
    Action.key_rotated: mark("Made new keys"),
    Action.key_ended: mark("Ended a key"),
    Action.integration_changed: mark("Changed the integration"),
    Action.settings_changed: mark("Changed the settings"),
    Action.test_mode_changed: mark("Switched test mode"),
    Action.test_clock_moved: mark("Moved the test clock"),
    Action.test_side_reset: mark("Deleted all test data"),
    Action.go_live_asked: mark("Asked to go live"),
    Action.go_live_approved: mark("Accepted the profile: may be live"),
    Action.go_live_refused: mark("Sent the profile back"),
    Action.profile_change_asked: mark("Proposed another profile"),
    Action.profile_change_withdrawn: mark("Took the proposed profile back"),
    Action.profile_change_approved: mark("Accepted the proposed profile"),
    Action.profile_change_refused: mark("Refused the proposed profile"),
    Action.merchant_suspended: mark("Suspended the account"),
    Action.merchant_resumed: mark("Lifted the suspension of the account"),
    Action.fee_plan_changed: mark("Changed the fee plan"),
    Action.payment_refunded: mark("Gave a payment back"),
    Action.subscription_cancelled: mark("Cancelled a subscription"),
    Action.subscription_changed: mark("Changed a subscription"),
    Action.delivery_confirmed: mark("Confirmed a delivery"),
    Action.evidence_given: mark("Gave evidence"),
    Action.pingback_resent: mark("Sent a pingback again"),
    Action.test_event_sent: mark("Sent a test event"),
    Action.exported: mark("Exported data"),
    Action.payout_changed: mark("Changed a payout"),
    Action.bank_account_read: mark("Read a bank account"),
    Action.outcome_asked: mark("Asked an acquirer for an outcome"),
    Action.mail_resent: mark("Sent a mail again"),
    Action.alarm_settled: mark("Settled an alarm"),
    Action.difference_accepted: mark("Accepted a difference"),
    Action.customer_erased: mark("Erased a customer"),
    Action.customer_exported: mark("Exported a customer's data"),
    Action.missed_periods_wanted: mark("Had missed periods charged"),
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
"""The names of actions, to be translated."""


def action_name(action: Action) -> str:
    """What an action is called, to be translated."""
    return ACTION_NAMES[action]
