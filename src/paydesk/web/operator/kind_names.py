"""What kinds of alarms, and of differences to an acquirer's balance, are called."""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.proceeds.findings import FindingKind
from paydesk.web.texts import mark

ALARMS: Mapping[AlarmKind, str] = {
    AlarmKind.held: mark("Held"),
    AlarmKind.set_aside: mark("Set aside"),
    AlarmKind.clock_off: mark("Clock off"),
    AlarmKind.standby_lost: mark("Standby lost"),
    AlarmKind.request_refused: mark("Request refused"),
    AlarmKind.contradiction: mark("Contradiction"),
    AlarmKind.order_held: mark("Order held"),
    AlarmKind.captured_elsewhere: mark("Captured elsewhere"),
    AlarmKind.refund_unknown: mark("Refund unknown"),
    AlarmKind.refunds_unread: mark("Refunds unread"),
    AlarmKind.dispute_waits: mark("Dispute waits"),
    AlarmKind.dispute_reckoned: mark("Dispute reckoned"),
    AlarmKind.dispute_unknown: mark("Dispute unknown"),
    AlarmKind.disputes_unread: mark("Disputes unread"),
    AlarmKind.fraud_warned: mark("Fraud warning"),
    AlarmKind.card_testing: mark("Card testing"),
    AlarmKind.not_reconciled: mark("Not reconciled"),
    AlarmKind.proceeds_differ: mark("Proceeds differ"),
    AlarmKind.policy_violated: mark("Policy violated"),
    AlarmKind.page_differs: mark("Page differs"),
    AlarmKind.key_unreadable: mark("Key unreadable"),
    AlarmKind.one_account_twice: mark("One account twice"),
    AlarmKind.acquirer_out: mark("Acquirer out"),
    AlarmKind.still_kept: mark("Still kept"),
    AlarmKind.nothing_kept: mark("Nothing kept"),
    AlarmKind.plan_forgotten: mark("Plan forgotten"),
    AlarmKind.half_moved: mark("Half moved"),
}

FINDINGS: Mapping[FindingKind, str] = {
    FindingKind.NOT_TOLD: mark("Not told"),
    FindingKind.NOT_PAID_OUT: mark("Not paid out"),
    FindingKind.UNKNOWN_HERE: mark("Unknown here"),
    FindingKind.STATE_DIFFERS: mark("State differs"),
    FindingKind.AMOUNT_DIFFERS: mark("Amount differs"),
    FindingKind.CURRENCY_DIFFERS: mark("Currency differs"),
    FindingKind.FEE_DIFFERS: mark("Fee differs"),
    FindingKind.CORRECTED: mark("Corrected"),
    FindingKind.UNEXPLAINED: mark("Unexplained"),
    FindingKind.SUM_DIFFERS: mark("Sum differs"),
    FindingKind.PAYOUT_CURRENCY: mark("Payout in another currency"),
    FindingKind.PAYOUT_FAILED: mark("Payout failed"),
}


def alarm_name(kind: str) -> str:
    """What a kind of alarm is called, to be translated; one of another release is called
    as it is written.
    """
    return ALARMS[AlarmKind(kind)] if kind in set(AlarmKind) else kind.replace("_", " ").capitalize()
