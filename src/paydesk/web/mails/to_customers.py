"""What a merchant's customers read: receipts, subscriptions, refunds, shipments."""

from __future__ import annotations

from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.web.mails.content import Content, MailMatter, known
from paydesk.web.texts import mark

_MANAGE = mark("Manage your subscription")


def receipt(telling: MailMatter) -> Content:
    """A payment at the checkout; one for goods that are shipped is only reserved as yet."""
    say, amount = telling.say, telling.money()
    if telling.facts.get("reserved"):
        return Content(
            say(mark("Your order at %(merchant)s"), merchant=telling.merchant),
            (
                say(
                    mark(
                        "Thank you for your order. %(amount)s is reserved on your card and will be charged when your "
                        "order is shipped."
                    )
                    if telling.by_card
                    else mark(
                        "Thank you for your order. %(amount)s is reserved and will be charged when your order is "
                        "shipped."
                    ),
                    amount=amount,
                ),
            ),
            _paid(telling),
        )
    return Content(
        say(mark("Your receipt from %(merchant)s"), merchant=telling.merchant),
        (
            say(
                mark("Thank you. %(merchant)s has received your payment of %(amount)s."),
                merchant=telling.merchant,
                amount=amount,
            ),
        ),
        _paid(telling),
        (say(mark("Your saved cards")), telling.saved_cards()) if telling.fact("shopper_token") else None,
    )


def subscription_started(telling: MailMatter) -> Content:
    """The first payment of a subscription, with what was agreed."""
    say, package = telling.say, telling.fact("package")
    return Content(
        say(mark("Your subscription to “%(package)s” has begun"), package=package),
        (
            say(
                mark("Thank you for subscribing to “%(package)s” from %(merchant)s."),
                package=package,
                merchant=telling.merchant,
            ),
        ),
        (*_paid(telling), *known((say(mark("What you agreed to")), telling.fact("terms_agreed")))),
        (say(_MANAGE), telling.portal()),
        (say(_on_that_page(telling)),),
    )


def _on_that_page(telling: MailMatter) -> str:
    """What a customer finds on the page of a subscription that has begun."""
    if telling.facts.get("without_card"):
        return mark("No card was needed. On that page you can add one, or cancel at any time.")
    if telling.by_card:
        return mark("You can see every payment on that page, replace your card, or cancel at any time.")
    return mark("You can see every payment on that page, change how you pay, or cancel at any time.")


def renewal_receipt(telling: MailMatter) -> Content:
    """A payment that the subscription made by itself."""
    say = telling.say
    return Content(
        say(mark("Your receipt from %(merchant)s"), merchant=telling.merchant),
        (
            say(
                mark("%(merchant)s has charged %(amount)s for your subscription “%(package)s”."),
                merchant=telling.merchant,
                amount=telling.money(),
                package=telling.fact("package"),
            ),
        ),
        (*_paid(telling), *known(*telling.items())),
        (say(_MANAGE), telling.portal()),
    )


_AFTER_THE_LAST_TRY = {
    DunningEnd.CANCEL: mark("If the next tries fail too, the subscription ends."),
    DunningEnd.KEEP_OPEN: mark("Nothing is charged for later periods until this one is paid."),
    DunningEnd.PAUSE: mark("If the charge keeps failing, your subscription is paused until you pay."),
}


def renewal_failed(telling: MailMatter) -> Content:
    """A payment that will be tried again, or waits for its customer, who may give another card."""
    say, package, next_try = telling.say, telling.fact("package"), telling.moment("date_next")
    return Content(
        say(mark("Your payment for “%(package)s” failed"), package=package),
        (
            say(
                mark("%(merchant)s could not charge %(amount)s for your subscription “%(package)s” to your card.")
                if telling.by_card
                else mark("%(merchant)s could not charge %(amount)s for your subscription “%(package)s”."),
                merchant=telling.merchant,
                amount=telling.money(),
                package=package,
            ),
            *((_tried_again(telling),) if next_try else ()),
        ),
        known(telling.instrument(), (say(mark("Next try")), next_try)),
        (say(mark("Pay now")), telling.paying()),
        (say(_AFTER_THE_LAST_TRY[DunningEnd(telling.fact("end") or DunningEnd.CANCEL)]),),
    )


def _tried_again(telling: MailMatter) -> str:
    return telling.say(
        mark("We will try again soon. To keep your subscription, check your card or use another one.")
        if telling.by_card
        else mark("We will try again soon. To keep your subscription, check your account or pay another way.")
    )


def card_expires(telling: MailMatter) -> Content:
    """A card that will not be good for the charges to come: the customer may give another one."""
    say, package, month = telling.say, telling.fact("package"), telling.month("expires")
    return Content(
        say(mark("Your card for “%(package)s” expires soon"), package=package),
        (
            say(
                mark(
                    "The card that pays for your subscription “%(package)s” from %(merchant)s is valid until %(month)s."
                ),
                package=package,
                merchant=telling.merchant,
                month=month,
            ),
            say(
                mark(
                    "To keep your subscription, use another card. If you have a new one already, you can enter it now."
                )
            ),
        ),
        known(telling.instrument(), (say(mark("Next payment")), telling.day("date_next"))),
        (say(mark("Use another card")), telling.portal("/card")),
    )


def charge_ahead(telling: MailMatter) -> Content:
    """A charge that is to come, early enough to cancel before it."""
    say, package = telling.say, telling.fact("package")
    return Content(
        say(mark("Your next payment for “%(package)s”"), package=package),
        (
            say(
                mark("%(merchant)s will charge %(amount)s for your subscription “%(package)s” on %(date)s."),
                merchant=telling.merchant,
                amount=telling.money(),
                package=package,
                date=telling.day("date_next"),
            ),
            say(mark("If you do not want that, cancel your subscription before that day.")),
        ),
        known(
            (say(mark("Amount")), telling.money()),
            telling.instrument(),
            (say(mark("Next payment")), telling.day("date_next")),
        ),
        (say(_MANAGE), telling.portal()),
    )


def card_wanted(telling: MailMatter) -> Content:
    """A trial without a card that ends soon: with one it goes on."""
    say, package, day = telling.say, telling.fact("package"), telling.day("ends_at")
    return Content(
        say(mark("Your free trial of “%(package)s” ends soon"), package=package),
        (
            say(
                mark("Your free trial of “%(package)s” from %(merchant)s ends on %(date)s."),
                package=package,
                merchant=telling.merchant,
                date=day,
            ),
            say(mark("To keep it, add a card. Nothing is charged before that day.")),
        ),
        known(
            (say(mark("Next payment")), f"{telling.money()}, {day}"),
            (say(mark("What you agreed to")), telling.fact("terms_agreed")),
        ),
        (say(mark("Add a card")), telling.portal("/card")),
        (say(mark("If you do nothing, your trial ends by itself, and nothing is charged.")),),
    )


def subscription_stopped(telling: MailMatter) -> Content:
    """The end after the last try to charge failed."""
    say, package = telling.say, telling.fact("package")
    return Content(
        say(mark("Your subscription to “%(package)s” has ended"), package=package),
        (
            say(
                mark(
                    "Your card could not be charged after several tries, so your subscription “%(package)s” from "
                    "%(merchant)s has ended. You will not be charged again."
                )
                if telling.by_card
                else mark(
                    "You could not be charged after several tries, so your subscription “%(package)s” from "
                    "%(merchant)s has ended. You will not be charged again."
                ),
                package=package,
                merchant=telling.merchant,
            ),
        ),
        button=(say(mark("See your subscription")), telling.portal()),
    )


def subscription_cancelled(telling: MailMatter) -> Content:
    """The end by somebody's wish, or of a trial for which no card was given."""
    say, package = telling.say, telling.fact("package")
    if telling.facts.get("without_card"):
        return Content(
            say(mark("Your free trial of “%(package)s” has ended"), package=package),
            (
                say(
                    mark("Your free trial of “%(package)s” from %(merchant)s has ended. Nothing was charged."),
                    package=package,
                    merchant=telling.merchant,
                ),
            ),
            button=(say(mark("See your subscription")), telling.portal()),
        )
    return Content(
        say(mark("Your subscription to “%(package)s” is cancelled"), package=package),
        (
            say(
                mark("Your subscription “%(package)s” from %(merchant)s is cancelled. You will not be charged again."),
                package=package,
                merchant=telling.merchant,
            ),
        ),
        button=(say(mark("See your subscription")), telling.portal()),
    )


def payment_failed(telling: MailMatter) -> Content:
    """A payment by a slow method that came to nothing."""
    say = telling.say
    return Content(
        say(mark("Your payment to %(merchant)s did not arrive"), merchant=telling.merchant),
        (
            say(
                mark("Your bank did not send your payment of %(amount)s to %(merchant)s, so the order is not paid."),
                amount=telling.money(),
                merchant=telling.merchant,
            ),
            say(mark("To pay it again, go back to the shop.")),
        ),
        known(
            (say(mark("Order")), telling.fact("merchant_order_id")),
            (say(mark("Description")), telling.fact("description")),
            (say(mark("Amount")), telling.money()),
        ),
    )


def refund(telling: MailMatter) -> Content:
    """Money that was given back."""
    say = telling.say
    return Content(
        say(mark("Your refund from %(merchant)s"), merchant=telling.merchant),
        (
            say(
                mark(
                    "%(merchant)s has refunded %(amount)s to your card. It may take some days to show on your "
                    "statement."
                )
                if telling.by_card
                else mark("%(merchant)s has refunded %(amount)s. It may take some days to show on your statement."),
                merchant=telling.merchant,
                amount=telling.money(),
            ),
        ),
        known(
            (say(mark("Order")), telling.fact("merchant_order_id")),
            (say(mark("Description")), telling.fact("description")),
            (say(mark("Refunded amount")), telling.money()),
            telling.instrument(),
        ),
    )


def shipment(telling: MailMatter) -> Content:
    """Goods that are on their way."""
    say, link = telling.say, telling.fact("tracking_url")
    return Content(
        say(mark("Your order from %(merchant)s is on its way"), merchant=telling.merchant),
        (say(mark("%(merchant)s has shipped your order."), merchant=telling.merchant),),
        known(
            (say(mark("Order")), telling.fact("merchant_order_id")),
            (say(mark("Description")), telling.fact("description")),
            (say(mark("Amount")), telling.money() if telling.fact("amount") else ""),
            (say(mark("Carrier")), telling.fact("carrier")),
            (say(mark("Tracking number")), telling.fact("tracking_id")),
        ),
        (say(mark("Track your parcel")), link) if link.startswith(("https://", "http://")) else None,
    )


def shopper_code(telling: MailMatter) -> Content:
    """The code by which who pays proves that this address is theirs."""
    say = telling.say
    return Content(
        say(mark("Your code for %(merchant)s"), merchant=telling.merchant),
        (
            say(mark("Enter this code on the page on which you asked for it:")),
            telling.fact("token"),
            say(
                mark("It is good for %(minutes)s minutes, and in that browser alone."), minutes=telling.fact("minutes")
            ),
        ),
        notes=(
            say(mark("We never ask you for this code. If you did not ask for it, ignore this mail: nothing happens.")),
        ),
    )


def _paid(telling: MailMatter) -> tuple[tuple[str, str], ...]:
    """What a receipt shows."""
    say = telling.say
    return known(
        (say(mark("Amount")), telling.money()),
        (say(mark("Order")), telling.fact("merchant_order_id")),
        (say(mark("Description")), telling.fact("description")),
        (say(mark("Date")), telling.day("paid_at")),
        telling.instrument(),
        (say(mark("Payment number")), telling.fact("payment_id")),
        (say(mark("Next payment")), telling.day("date_next")),
    )
