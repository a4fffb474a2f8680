"""Which alarms there are. A new kind gets its words here, and nowhere else."""

from __future__ import annotations

from enum import StrEnum

from paydesk.core.wording import Worded, worded


class AlarmKind(StrEnum):
    """What is wrong; `MEANINGS` says it in words, and what a person can do."""

    held = "held"
    set_aside = "set_aside"
    clock_off = "clock_off"
    standby_lost = "standby_lost"
    request_refused = "request_refused"
    contradiction = "contradiction"
    order_held = "order_held"
    captured_elsewhere = "captured_elsewhere"
    refund_unknown = "refund_unknown"
    refunds_unread = "refunds_unread"
    dispute_waits = "dispute_waits"
    dispute_reckoned = "dispute_reckoned"
    dispute_unknown = "dispute_unknown"
    disputes_unread = "disputes_unread"
    fraud_warned = "fraud_warned"
    card_testing = "card_testing"
    not_reconciled = "not_reconciled"
    proceeds_differ = "proceeds_differ"
    policy_violated = "policy_violated"
    page_differs = "page_differs"
    key_unreadable = "key_unreadable"
    one_account_twice = "one_account_twice"
    acquirer_out = "acquirer_out"
    still_kept = "still_kept"
    nothing_kept = "nothing_kept"
    plan_forgotten = "plan_forgotten"
    half_moved = "half_moved"


MEANINGS: dict[AlarmKind, Worded] = {
    AlarmKind.held: worded(
        "Nothing that moves money is begun: the database may have forgotten payments that customers and shops were "
        "told of. Everything else goes on. Our books are compared with the acquirers' own lists every minute, and once "
        "both agree the hold ends by itself. What is left stands beside this as `not_reconciled`: settle it, or take "
        "it with `paydesk hold accept`."
    ),
    AlarmKind.set_aside: worded(
        "A row could not be worked out or recorded. Everything else went on; this one is tried again every hour or so. "
        "Look at the reason: what it names has to be mended. Once it goes well, the alarm settles itself."
    ),
    AlarmKind.clock_off: worded(
        "Clocks differ. A process whose clock is off the database's does no work that is due; if all of them agree, "
        "the database's own clock is off. Set the machine's time (NTP)."
    ),
    AlarmKind.standby_lost: worded(
        "Live payments are taken and no synchronous standby has what is committed: a failover, or a broken disk, would "
        "forget payments that customers were told of. Bring the standby back, or make a new one; don't fail over to "
        "one that was behind. Once one is there, the alarm settles itself."
    ),
    AlarmKind.contradiction: worded(
        "The bank says the opposite of what is recorded. Nothing more is done by itself: compare with the bank's own "
        "list, and give back or collect what differs."
    ),
    AlarmKind.order_held: worded(
        "An order or renewal is neither charged nor refused: under its key the bank has an older purchase, with "
        "another amount or other terms, which this database has forgotten. It waits for you: compare with the bank's "
        "own list, and settle there what was taken, with the merchant."
    ),
    AlarmKind.captured_elsewhere: worded(
        "An order that nobody shipped was to be let go of, and the bank has captured it, or a part. That money stays. "
        "Somebody captured it in the bank's own pages, or a database that was restored has forgotten a shipment."
    ),
    AlarmKind.refund_unknown: worded(
        "A refund came back to an acquirer, and it is not booked here as the acquirer tells it. Compare with the "
        "acquirer's own list: the money is there, and its customer has not got it."
    ),
    AlarmKind.refunds_unread: worded(
        "What failed of an acquirer's refunds could not be read for hours. It forgets after 30 days. Mend what the "
        "reason names; the reading goes on by itself."
    ),
    AlarmKind.request_refused: worded(
        "An acquirer refused charges as requests, before any bank decided. Customers are told at once; renewals are "
        "tried again at ever longer pauses for a week, then their subscriptions stop. Mend what the reason names: the "
        "secret key, what the acquirer's account may do, or this customer's stored card."
    ),
    AlarmKind.dispute_waits: worded(
        "A dispute could not be booked. Nothing of it is in the ledger; it waits with its reason, and is tried again. "
        "See what the acquirer says of it; `paydesk chargeback waiting` lists them."
    ),
    AlarmKind.dispute_reckoned: worded(
        "A dispute is in another currency than its payment, and the acquirer did not say what it is worth there. All "
        "that is left of the payment was booked; `paydesk chargeback reckon` corrects it once you know."
    ),
    AlarmKind.dispute_unknown: worded(
        "A chargeback that is open here is not known to its acquirer any more. Ask the acquirer what became of it."
    ),
    AlarmKind.disputes_unread: worded(
        "An acquirer's disputes could not be read for more than an hour: what customers' banks take back is not in the "
        "books. Check that the acquirer can be reached, and what its key may read."
    ),
    AlarmKind.fraud_warned: worded(
        "A card's issuer holds a payment for fraud, and nothing has moved yet. Tell its merchant: a refund now may "
        "avert the chargeback and its fee, and goods can be kept back. Once the payment is refunded or disputed, the "
        "alarm settles itself."
    ),
    AlarmKind.not_reconciled: worded(
        "An acquirer's own list says other than our books of a purchase or refund, and it can't be adopted (`paydesk "
        "reconcile --fix`); the reason says why. Look at it in the acquirer's pages and here, then collect or give "
        "back what differs (`paydesk undo`). It is compared again every hour, and the alarm settles itself once both "
        "agree; accept it with `paydesk alarm accept` if it is to stay so."
    ),
    AlarmKind.proceeds_differ: worded(
        "What an acquirer keeps or pays out differs from our books: a payment that it never paid out, a fee, an amount,"
        " a payout that is not the sum of its lines. The reason says what, and what to do. It is compared every hour, "
        "and the alarm settles itself once both agree; accept it with `paydesk proceeds accept` if it is to stay so."
    ),
    AlarmKind.card_testing: worded(
        "Somebody tries out cards at this merchant: most are declined, also with 3-D Secure asked of everybody. The "
        "merchant takes no cards for a while, then goes on with 3-D Secure for all. Look at the attempts; suspend the "
        "merchant if it goes on. If it is a false alarm, end the pause on the merchant's page or with `paydesk "
        "merchant guard lift --live`, which settles this."
    ),
    AlarmKind.policy_violated: worded(
        "A customer's browser reports that a page with a card form tried to use what its policy forbids. The browser "
        "has kept it out. Open such a page yourself and run `paydesk check --pages`: a proxy, a network or a program on"
        " the customer's machine may write into pages. Anybody can send such a report, so one alone proves nothing."
    ),
    AlarmKind.page_differs: worded(
        "The payment page that comes from the public address is not the one that was built: something between "
        "writes into it, or serves another release. Run `paydesk check --pages` and look at the proxy. If you can't "
        "explain it, stop taking cards: suspend live merchants, or stop `serve`."
    ),
    AlarmKind.key_unreadable: worded(
        "A merchant's private key can't be opened, so its forms are answered 503 and nobody can pay there. Put the "
        "vault key that the reason names back at the end of PAYDESK_VAULT_KEYS and restart (`paydesk vault status` "
        "says what rests under it). If it is gone for good, have the merchant make another pair in the account and "
        "put that into the shop. Then settle this."
    ),
    AlarmKind.still_kept: worded(
        "A customer was erased, or has removed an instrument, and the acquirer has not let go of what it keeps of it: "
        "nothing here charges it any more, but it is there. It is told so again every few hours. Mend what the reason "
        "names (what the account's key may do), or remove it in the acquirer's pages; then the alarm settles itself."
    ),
    AlarmKind.nothing_kept: worded(
        "A customer paid on an acquirer's page that was to keep what they paid with, for their subscription or for "
        "charges that they agreed to, and nothing was kept. What they paid stands; later charges will fail, and a "
        "subscription then asks its customer for another card. See in the acquirer's pages what the payment was made "
        "with, and whether the account may keep it. Settle this once the customer has been told."
    ),
    AlarmKind.plan_forgotten: worded(
        "A customer was charged for another plan, and this database has forgotten the change: the payment is in the "
        "books again, and the subscription is on its old plan. Tell the merchant. Once the change is asked for again, "
        "to be charged now, what was paid counts for it, nobody is charged twice, and the alarm settles itself. If "
        "nobody wants it any more, give the payment back and settle this."
    ),
    AlarmKind.half_moved: worded(
        "A merchant's move to another cell was left half-way. A shop that is closed for it sells nothing until the "
        "move is ended. In the cell that it leaves, run the same `paydesk merchant move` again, which goes on where "
        "it was left, or with `--cancel` as long as it has not moved. Then the alarm settles itself."
    ),
    AlarmKind.one_account_twice: worded(
        "Two accounts here are one and the same at their acquirer, under two keys: what it took is read twice, and "
        "taken for forgotten under the other name. Disable the younger one (`paydesk acquirer disable`), or give the "
        "settings the key of another account. The alarm settles itself once each is an account of its own."
    ),
    AlarmKind.acquirer_out: worded(
        "At least half of the latest calls to an account at an acquirer got no answer, or a very slow one. New "
        "payments go to the other accounts that may take them; where there is none, this one is still asked. What was "
        "begun there stays there. It is asked every half minute, later less often, whether it answers; once it does, "
        "it is back in turn and the alarm settles itself. See the acquirer's own status page, and our connection."
    ),
}
"""What each means, for the operator's page and the command."""
