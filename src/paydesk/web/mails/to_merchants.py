"""What merchants and the people who log in read: what needs them, links that work once,
and security notices.
"""

from __future__ import annotations

from paydesk.domain.accounts.links import AccountLink
from paydesk.domain.accounts.roles import Role
from paydesk.domain.pingbacks.schedule import MOST_ATTEMPTS, RESEND_INTERVAL
from paydesk.web.browsers import browser_of
from paydesk.web.mails.content import Content, MailMatter, account_button, known
from paydesk.web.mails.role_names import ROLE_NAMES
from paydesk.web.texts import mark

_ONCE = mark("The link works once, and only for a limited time.")
_NOT_YOU = mark("If you did not ask for this, you can ignore this mail.")

_CHANGES: dict[str, str] = {
    "logged_in": mark("New log-in to your account"),
    "log_in_failed": mark("Log-in to your account is paused after wrong passwords"),
    "password_changed": mark("Your password was changed"),
    "password_reset": mark("Your password was changed"),
    "email_changed": mark("Your e-mail address was changed"),
    "second_factor_added": mark("Your second factor was switched on"),
    "second_factor_removed": mark("Your second factor was switched off"),
    "second_factor_reset": mark("Your second factor was reset"),
    "second_factor_failed": mark("Log-in to your account is paused after wrong codes"),
    "recovery_code_used": mark("A recovery code was used"),
    "recovery_codes_renewed": mark("Your recovery codes were renewed"),
    "bank_account_changed": mark("The bank account of your shop was changed"),
    "bank_account_proposed": mark("Somebody gave another bank account for your shop"),
    "profile_change_proposed": mark("Somebody proposed a change of your shop’s business profile"),
    "key_rotated": mark("A key pair of your shop was renewed"),
    "key_ended": mark("An old key of your shop was ended"),
    "pingback_url_changed": mark("The pingback address of your shop was changed"),
}
_OTHER_CHANGE = mark("Your account was changed")
_IF_NOT_YOU = mark(
    "If this was you, there is nothing to do. If not, choose a new password at once, which ends your other sessions, "
    "and look through your account."
)
_IF_NOT_THE_TEAM = mark(
    "If you or your team did this, there is nothing to do. If not, choose a new password at once, which ends your "
    "other sessions, and look through the team, the keys and the settings of your shop."
)

_PROPOSED = mark("It is in force only once we have looked at it; until then you can take it back in your account.")


_REMINDED = (
    mark("Order %(order)s must be shipped soon"),
    mark(
        "The payment for this order is only reserved. Ship it and confirm the delivery in time, or the money goes back "
        "to the customer."
    ),
)
_TOLD_SOONER = (
    mark("Order %(order)s must be shipped sooner than others"),
    mark(
        "The customer’s way of paying reserves the money for a shorter time than others. Ship the order and confirm "
        "the delivery by then, or the money goes back to the customer."
    ),
)


def void_reminder(telling: MailMatter) -> Content:
    """An order whose money is let go of unless it is shipped in time."""
    say, order = telling.say, telling.fact("merchant_order_id")
    title, text = _TOLD_SOONER if telling.fact("sooner") else _REMINDED
    return Content(
        say(title, order=order),
        (say(text),),
        known(
            (say(mark("Order")), order),
            (say(mark("Amount")), telling.money()),
            (say(mark("Ship by")), telling.moment("ship_by")),
        ),
        account_button(telling, f"deliveries/{telling.fact('payment_id')}"),
    )


def chargeback_alert(telling: MailMatter) -> Content:
    """A customer's bank took money back."""
    say, order = telling.say, telling.fact("merchant_order_id")
    dispute = telling.fact("chargeback_id")
    return Content(
        say(mark("Chargeback for order %(order)s"), order=order),
        (
            say(mark("The customer’s bank has taken back %(amount)s for this order."), amount=telling.money()),
            say(mark("If the payment was right, send evidence as soon as you can.")),
        ),
        known(
            (say(mark("Order")), order),
            (say(mark("Amount")), telling.money()),
            (say(mark("Reason")), telling.fact("reason")),
            (say(mark("Payment number")), telling.fact("payment_id")),
        ),
        # A mail that older code queued knows the payment alone.
        account_button(telling, f"disputes/{dispute}" if dispute else f"payments/{telling.fact('payment_id')}"),
    )


def failing_endpoint(telling: MailMatter) -> Content:
    """The merchant's server does not take pingbacks."""
    say, ngettext = telling.say, telling.texts.translations.ngettext
    resends = MOST_ATTEMPTS - 1
    return Content(
        say(mark("Your server does not accept our pingbacks")),
        (
            ngettext(
                "We could not deliver pingbacks to your server. We keep trying every %(pause)s, up to %(times)s time "
                "for each; after that you can send them again from your account.",
                "We could not deliver pingbacks to your server. We keep trying every %(pause)s, up to %(times)s times "
                "for each; after that you can send them again from your account.",
                resends,
            )
            % {"pause": telling.lasting(RESEND_INTERVAL), "times": resends},
        ),
        known(
            (say(mark("Address")), telling.fact("url")),
            (say(mark("Failing since")), telling.moment("since")),
            (say(mark("Tries")), telling.fact("attempts")),
            (say(mark("Last answer")), _answer(telling)),
        ),
        account_button(telling, "pingbacks"),
    )


def authorization_voided(telling: MailMatter) -> Content:
    """Reserved money went back to a customer, because nobody confirmed a shipment in time."""
    say, order = telling.say, telling.fact("merchant_order_id")
    return Content(
        say(mark("The reserved money for order %(order)s was released"), order=order),
        (
            say(
                mark(
                    "Nobody confirmed a shipment of this order in time, so %(amount)s that was reserved was released. "
                    "Nothing was charged."
                ),
                amount=telling.money(),
            ),
            say(mark("If you have shipped the order, ask the customer to pay again.")),
        ),
        known(
            (say(mark("Order")), order),
            (say(mark("Amount")), telling.money()),
            (say(mark("Payment number")), telling.fact("payment_id")),
        ),
        account_button(telling, f"payments/{telling.fact('payment_id')}"),
    )


def security_notice(telling: MailMatter) -> Content:
    """Something was done to an account, or to a shop by its team, that might have been done
    by somebody else.
    """
    say = telling.say
    title = say(_CHANGES.get(telling.fact("what"), _OTHER_CHANGE))
    proposed = (say(_PROPOSED),) if telling.fact("what").endswith("_proposed") else ()
    open_account, address = account_button(telling)
    return Content(
        title,
        (title, *proposed, say(_IF_NOT_THE_TEAM if telling.fact("shop") else _IF_NOT_YOU)),
        known(
            (say(mark("Shop")), telling.fact("shop")),
            (say(mark("Done by")), telling.fact("by")),
            (say(mark("Address")), telling.fact("pingback_url")),
            (say(mark("Time")), telling.moment("at")),
            (say(mark("From the address")), telling.fact("client_address")),
            (say(mark("Browser and system")), browser_of(telling.fact("user_agent"))),
            (say(mark("Recovery codes left")), telling.fact("left")),
        ),
        (open_account, f"{address}/security"),
    )


def invitation(telling: MailMatter) -> Content:
    """A colleague asks somebody to join the team."""
    say = telling.say
    team = telling.fact("merchant_name") or telling.merchant
    role = telling.fact("role")
    return Content(
        say(mark("Join %(merchant)s on Paydesk"), merchant=team),
        (say(mark("You are invited to join the team of %(merchant)s."), merchant=team),),
        known(
            (say(mark("Invited by")), telling.fact("invited_by")),
            (say(mark("Role")), say(ROLE_NAMES[Role(role)]) if role in set(Role) else role),
        ),
        (say(mark("Join the team")), _link(telling, AccountLink.invitation)),
        (say(_ONCE), say(_NOT_YOU)),
    )


def confirm_email(telling: MailMatter) -> Content:
    """Somebody gave this address as theirs."""
    say = telling.say
    return Content(
        say(mark("Confirm your e-mail address")),
        (say(mark("Please confirm that this e-mail address is yours.")),),
        button=(say(mark("Confirm the address")), _link(telling, AccountLink.email)),
        notes=(say(_ONCE), say(_NOT_YOU)),
    )


def reset_password(telling: MailMatter) -> Content:
    """Somebody forgot a password, or has none yet."""
    say = telling.say
    return Content(
        say(mark("Choose a new password")),
        (say(mark("Somebody, we hope you, asked for a new password for your account.")),),
        known((say(mark("From the address")), telling.fact("client_address"))),
        (say(mark("Choose a password")), _link(telling, AccountLink.password)),
        (say(_ONCE), say(_NOT_YOU)),
    )


def _link(telling: MailMatter, link: AccountLink) -> str:
    return link.at(telling.account, telling.fact("token"))


def _answer(telling: MailMatter) -> str:
    """What the merchant's server said last: its status, or why there was none."""
    return telling.fact("status") or telling.fact("error")
