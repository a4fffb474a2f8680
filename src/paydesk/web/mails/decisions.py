"""What owners read when an operator has decided about their business:
its profile, and whether it may take payments.
"""

from __future__ import annotations

from paydesk.web.mails.content import Content, MailMatter, account_button, known
from paydesk.web.texts import mark

_PROFILE = "settings/profile"


def profile_accepted(telling: MailMatter) -> Content:
    """The merchant may go live."""
    say = telling.say
    return Content(
        say(mark("Your business profile is accepted")),
        (
            say(mark("%(merchant)s may take real payments from now on."), merchant=telling.merchant),
            say(mark("You decide when to begin: leave test mode in your account as soon as your shop is ready.")),
        ),
        button=account_button(telling, "overview"),
    )


def profile_refused(telling: MailMatter) -> Content:
    """The profile came back, with what to change."""
    say = telling.say
    return Content(
        say(mark("Your business profile needs changes")),
        (
            say(
                mark(
                    "We can’t accept the business profile of %(merchant)s as it is. Please change it and send it again."
                ),
                merchant=telling.merchant,
            ),
        ),
        known((say(mark("Reason")), telling.fact("reason"))),
        account_button(telling, _PROFILE),
    )


def profile_change_accepted(telling: MailMatter) -> Content:
    """What was proposed is in force, and payouts to another bank account wait."""
    say, paused = telling.say, bool(telling.fact("payouts_from"))
    return Content(
        say(mark("The change of your business profile is accepted")),
        (
            say(mark("What was proposed for %(merchant)s is in force from now on."), merchant=telling.merchant),
            *((say(mark("The bank account is new, so payouts wait for some days.")),) if paused else ()),
        ),
        known((say(mark("Payouts from")), telling.moment("payouts_from"))),
        account_button(telling, _PROFILE),
    )


def profile_change_refused(telling: MailMatter) -> Content:
    """What was accepted before stays in force."""
    say = telling.say
    return Content(
        say(mark("The change of your business profile was refused")),
        (
            say(
                mark("The profile of %(merchant)s that we accepted before stays in force, its bank account too."),
                merchant=telling.merchant,
            ),
        ),
        known((say(mark("Reason")), telling.fact("reason"))),
        account_button(telling, _PROFILE),
    )


def merchant_suspended(telling: MailMatter) -> Content:
    """No real payment begins until the operator lifts it."""
    say = telling.say
    return Content(
        say(mark("%(merchant)s can’t take payments for now"), merchant=telling.merchant),
        (
            say(mark("We have suspended the account of %(merchant)s."), merchant=telling.merchant),
            say(
                mark(
                    "New payments are turned away and renewals wait. What is under way is finished; refunds, "
                    "shipments, cancellations and tests go on."
                )
            ),
        ),
        known((say(mark("Reason")), telling.fact("reason"))),
        account_button(telling, "overview"),
    )


def merchant_restored(telling: MailMatter) -> Content:
    """The suspension is over."""
    say = telling.say
    return Content(
        say(mark("%(merchant)s can take payments again"), merchant=telling.merchant),
        (
            say(mark("The suspension of the account is lifted.")),
            say(
                mark(
                    "Each subscription that fell due meanwhile is charged for one period now; further missed periods "
                    "only if the operator chose so."
                )
            ),
        ),
        button=account_button(telling, "overview"),
    )
