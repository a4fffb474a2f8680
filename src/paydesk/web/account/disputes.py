"""Disputes: the list with the time that is left, and one with what is known of it, to answer."""

from __future__ import annotations

import re
from datetime import UTC, timedelta
from math import ceil

from babel.numbers import format_decimal
from starlette.responses import Response

from paydesk.adapters.acquirers.disputes import EvidenceKind
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, PaydeskError, Unavailable
from paydesk.core.money import written
from paydesk.core.wording import worded
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business import acting
from paydesk.domain.business.chargebacks_for_team import (
    ChargebackForTeam,
    KnownFacts,
    find_chargeback_for_team,
    known_facts,
    list_chargebacks,
)
from paydesk.domain.chargebacks.evidence_files import MOST_BYTES, MOST_PAGES, add_file, list_files, remove_file
from paydesk.domain.chargebacks.giving_evidence import LONGEST_EVIDENCE, PATIENCE, find_answer, save_draft
from paydesk.domain.chargebacks.states import ChargebackState, EvidenceState
from paydesk.web.account.face import FACE
from paydesk.web.console import chargeback_words
from paydesk.web.console.evidence_files import KINDS, download
from paydesk.web.console.forms import read_evidence
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.list_parameters import ROWS, list_address, mark_of, page_asked
from paydesk.web.console.places import placed
from paydesk.web.console.visit import Visit
from paydesk.web.texts import SOURCE_LANGUAGE

section = Section(FACE)
_DISPUTES = "/account/{merchant_id}/disputes"
_ONE = f"{_DISPUTES}/{{chargeback_id}}"
_REMOVE = re.compile(r"remove ([0-9]{1,16})")


@section.page(_DISPUTES, needs=Permission.view)
async def show_disputes(visit: Visit) -> Response:
    """A page of them, newest first: those that are not decided, or all."""
    path, everything = visit.url("disputes"), visit.form.text("all", 1) == "1"
    kept = {"all": "1" if everything else ""}
    found = await list_chargebacks(visit.database, visit.shop, page_asked(visit), is_open=not everything)
    shown = found[:ROWS]
    before = mark_of(shown[-1].opened_at, shown[-1].id) if len(found) > ROWS else ""
    return visit.page(
        "disputes.html",
        disputes=shown,
        views=[(path, visit.texts.get("Not decided")), (f"{path}?all=1", visit.texts.get("All"))],
        current=list_address(path, kept),
        now=utc_now(),
        shop_now=await visit.shop_now(),
        days_left=_days_left,
        state_of=chargeback_words.state_of,
        reason_of=lambda one: visit.texts.get(chargeback_words.reason_of(one.reason)[0]),
        newest=list_address(path, kept) if visit.form.text("before", 60) else "",
        older=list_address(path, {**kept, "before": before}) if before else "",
    )


@section.page(_ONE, needs=Permission.view)
async def show_dispute(visit: Visit) -> Response:
    """One, with what is known of the payment, and the answer as it stands."""
    return await _dispute_page(visit)


@section.page(f"{_ONE}/files/{{file_id}}", needs=Permission.view)
async def download_file(visit: Visit) -> Response:
    """A file of the answer, to be saved."""
    return await download(visit, visit.shop, visit.number("chargeback_id"), visit.number("file_id"))


@section.action(_ONE, needs=Permission.answer_disputes, read=read_evidence)
async def answer(visit: Visit) -> Response:
    """Keep a draft, with a file that was chosen, or without one that is removed;
    or hand the evidence to the bank.
    """
    chargeback_id, text = visit.number("chargeback_id"), visit.form.text("text", LONGEST_EVIDENCE + 1)
    text = text.replace("\r\n", "\n")
    page = visit.url(f"disputes/{chargeback_id}")
    desk = visit.services.desk
    try:
        await save_draft(desk, visit.shop, chargeback_id, text)
        if await _change_files(visit, chargeback_id):
            return visit.go(page, visit.texts.get("The file is removed, and the draft is saved."))
        if visit.form.text("act", 10) != "send":
            return visit.go(page, visit.texts.get("The draft is saved. The bank has not been given it."))
        await acting.answer_dispute(
            desk, visit.session, chargeback_id, text, shop_now=await visit.shop_now(), now=visit.now
        )
    except (Malformed, Conflict, Unavailable) as error:
        return await _dispute_page(visit, text, error)
    return visit.go(page, visit.texts.get("The bank has been given your evidence."))


async def _change_files(visit: Visit, chargeback_id: int) -> bool:
    """Add the file that was chosen, or remove the one whose button was pressed
    (then it is true).
    """
    desk, removed = visit.services.desk, _REMOVE.fullmatch(visit.form.text("act", 40))
    if removed:
        await remove_file(desk, visit.shop, chargeback_id, int(removed[1]))
        return True
    content, name = visit.form.files.get("file", b""), visit.form.file_names.get("file", "")
    if content or name:
        kind = visit.form.text("kind", 40)
        if kind not in set(EvidenceKind):
            raise Malformed(worded("say what the file shows"), "kind")
        await add_file(desk, visit.shop, chargeback_id, EvidenceKind(kind), name, content, now=visit.now)
    return False


async def _dispute_page(visit: Visit, typed: str = "", error: PaydeskError | None = None) -> Response:
    """The page, with what was typed and what is wrong, if anything is."""
    database, shop, desk = visit.database, visit.shop, visit.services.desk
    one = await find_chargeback_for_team(database, shop, visit.number("chargeback_id"))
    facts, stands = await known_facts(database, shop, one.payment_id), await find_answer(desk, shop, one.id)
    acquirer = desk.acquirers.get(one.acquirer)
    elsewhere = acquirer.capabilities.answered_at if acquirer is not None else ""
    elsewhere = elsewhere and visit.texts.get(elsewhere)
    unknown = stands.is_unknown(PATIENCE)
    sending = stands.evidence_state is EvidenceState.SENDING and not unknown
    open_now = one.state in (ChargebackState.INQUIRY, ChargebackState.OPEN) and not stands.is_late
    may_answer = open_now and not one.is_answered and not sending
    written = typed or stands.evidence_draft or (one.evidence if not one.is_answered else "")
    return visit.page(
        "dispute.html",
        status=error.status if error is not None else 200,
        one=one,
        facts=facts,
        placed=placed,
        state=chargeback_words.state_of(one),
        reason=chargeback_words.reason_of(one.reason),
        late=stands.is_late,
        days_left=_days_left(one),
        # The bank goes by real time; beside a test clock its day is one of the shop's own.
        answer_until=one.respond_by and one.respond_by + (await visit.shop_now() - utc_now()),
        unknown=unknown,
        sending=sending,
        elsewhere=elsewhere,
        may_answer=may_answer,
        answered=one.is_answered,
        removable=may_answer and not unknown and visit.can(Permission.answer_disputes),
        text=written or ready_to_send(visit, one, facts),
        longest=LONGEST_EVIDENCE,
        **await _files_of(visit, one),
        errors=field_errors(visit, error, "text", "file", "kind") if error is not None else {},
    )


async def _files_of(visit: Visit, one: ChargebackForTeam) -> dict[str, object]:
    """The answer's files, and which more it may have."""
    files = await list_files(visit.database, visit.shop, one.id)
    acquirer = visit.services.desk.acquirers.get(one.acquirer)
    there = {file.kind for file in files}
    return {
        "files": files,
        "files_url": visit.url(f"disputes/{one.id}/files"),
        "kinds": KINDS,
        "free_kinds": [(str(kind), visit.texts.get(words)) for kind, words in KINDS.items() if kind not in there],
        "kind": visit.form.text("kind", 40) or EvidenceKind.OTHER,
        "takes_files": acquirer is not None and acquirer.capabilities.evidence_files,
        "most_megabytes": format_decimal(MOST_BYTES / 1_000_000, locale=visit.texts.locale),
        "most_pages": MOST_PAGES,
    }


def _days_left(one: ChargebackForTeam) -> int:
    """Days, begun ones too, until the bank takes no answer any more."""
    left = (one.respond_by or utc_now()) - utc_now()
    return max(ceil(left / timedelta(days=1)), 0)


def ready_to_send(visit: Visit, one: ChargebackForTeam, facts: KnownFacts) -> str:
    """What is known, as an answer to go on from; in English, which banks read."""
    payment = facts.payment
    seen = payment.seen
    lines = [
        f"Order {seen.merchant_order_id}: {payment.description or 'see our shop'}.",
        f"Paid: {written(seen.amount, seen.currency)} {seen.currency}"
        + (f" on {seen.paid_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC." if seen.paid_at else "."),
    ]
    customer = ", ".join(filter(None, (f"{seen.first_name} {seen.last_name}".strip(), seen.email, seen.country)))
    if customer:
        lines.append(f"Customer: {customer}.")
    if facts.paid_by is not None:
        lines.append(f"Paid from the address {placed(visit, facts.paid_by.client_address, SOURCE_LANGUAGE)}.")
        if facts.paid_by.challenged:
            lines.append("The cardholder's bank asked for 3-D Secure before the payment.")
    if facts.receipt_at is not None:
        lines.append(f"Receipt mailed on {facts.receipt_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC.")
    if facts.agreed is not None:
        at = facts.agreed.created_at.astimezone(UTC)
        lines.append(f'Agreed to on {at:%Y-%m-%d %H:%M} UTC: "{facts.agreed.terms_agreed}"')
    for before in facts.earlier:
        address = placed(visit, before.client_address, SOURCE_LANGUAGE)
        where = f" from the address {address}" if address else ""
        lines.append(
            f"The same customer paid the order {before.merchant_order_id} on "
            f"{before.paid_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC{where}, and did not dispute it."
        )
    for delivery in facts.deliveries:
        parts = (delivery.carrier, delivery.tracking_id, delivery.tracking_url)
        about = ", ".join(filter(None, parts))
        said = (
            f"{str(delivery.status).replace('_', ' ').capitalize()} on {delivery.created_at.astimezone(UTC):%Y-%m-%d}"
        )
        lines.append(f"{said}: {about}." if about else f"{said}.")
    return "\n".join(lines)[:LONGEST_EVIDENCE]
