"""Who is erased is found nowhere any more, and nothing else changed:
not the ledger, not another customer.
"""

from __future__ import annotations

import errno
import fcntl
import json
import resource
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest
from tests import breaking, set_back, shopfront
from tests.databases import unguarded
from tests.domain.payments.test_card_secrecy import dump
from tests.lengths import long
from tests.shopfront import MONTHLY
from tests.sweeping import database, database_url
from tests.till import Till

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.vault import Vault, generate_secret
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound, SetupError
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.billing.charging_saved import Wanted, charge_saved
from paydesk.domain.mail.asking_cards import ask_for_cards
from paydesk.domain.mail.telling import tell_events
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.refused_forms import log_rejected_form
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.free_trials import begin_free_trial
from paydesk.domain.payments.hosting import Guest
from paydesk.domain.payments.refunding import refund
from paydesk.domain.payments.results import Paid, Refused
from paydesk.domain.pingbacks.resending_by_hand import resend
from paydesk.domain.privacy.belongings import Subject
from paydesk.domain.privacy.erasing import Erasure, erase
from paydesk.domain.privacy.erasures import ErasureList, still_there
from paydesk.domain.privacy.exporting import export
from paydesk.domain.subscriptions.changing import pause
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

__all__ = ["database", "database_url"]

VISA, DECLINED = "4242424242424242", "4000000000000002"
EMAIL, NAME = "Zebediah_Q@quill.example", "Zebediah Quillfeather"
SECRETS = (
    "zebediah", "quillfeather", "quill.example", "198.51.100.177", "+44 7700 900461", "Anchor Lane 9", "PARCEL0461",
    "he signed for it", "Left with the neighbour", "Happy birthday Z",
)  # fmt: skip


def subject_of(scene: Till) -> Subject:
    return Subject(scene.shop.merchant_id, email=EMAIL.upper())


async def open_order(scene: Till, order: str, email: str, name: str, terms: Terms | None = None) -> Link:
    first, _, last = name.partition(" ")
    asked: dict[str, Any] = {
        "description": f"A mug for {name}",
        "success_url": f"https://shop.example/thanks?who={email}",
        **{"email": email, "first_name": first, "last_name": last, "country": "GB"},
    }
    form: dict[str, Any] = {
        "merchant_order_id": order,
        "email": email,
        "customer": {"phone": "+44 7700 900461"},
        "quantity": "2",
    }
    if email != EMAIL:
        form["customer"] = {"phone": "+44 1"}
    form |= {"note": "Happy birthday Z"} if email == EMAIL else {}
    return await shopfront.order(scene.database, scene.shop, order, terms=terms, form=form, **asked)


async def buy(
    scene: Till, order: str, email: str = EMAIL, name: str = NAME, *, number: str = VISA, terms: Terms | None = None
) -> Any:
    link = await open_order(scene, order, email, name, terms)
    address = "198.51.100.177" if email == EMAIL else "192.0.2.1"
    return await shopfront.pay(scene.desk, link, number, name=name, email=email, address=address)


async def acknowledge(scene: Till) -> None:
    """The shop has heard of everything."""
    await scene.database.execute(
        "insert into pingback_attempt (merchant_id, live, pingback_id, number, at, url, request_headers,"
        " request_body, status, response_body, duration_ms) select merchant_id, live, id, 1, now(), url,"
        " '{\"X-Service-Signature\": \"abc\"}', payload, 200, 'ok', 5 from pingback"
        " where merchant_id = $1 and state = 'due'",
        scene.shop.merchant_id,
    )
    await set_back.acknowledged(scene.database, {"merchant_id": scene.shop.merchant_id, "state": "due"})


async def answer_once(scene: Till, key: str, said: dict[str, Any]) -> None:
    """A call of the shop's server was answered so, under its key."""
    await scene.database.execute(
        "insert into api_call (merchant_id, live, request_key, request_digest, status, answer, created_at)"
        " values ($1, false, $2, '', 200, $3, now())",
        scene.shop.merchant_id, key, json.dumps(said),
    )  # fmt: skip


async def mail_team(scene: Till, once: str, facts: dict[str, Any]) -> None:
    """The shop's team is mailed about a customer."""
    await scene.database.execute(
        "insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)"
        " values ($1, false, 'chargeback_alert', 'owner@shop.example', 'en', $3, $2, now(), now())",
        scene.shop.merchant_id, once, json.dumps(facts),
    )  # fmt: skip


async def erase_subject(scene: Till, **how: Any) -> Erasure:
    return await erase(scene.database, subject_of(scene), now=utc_now(), **how)


@pytest.fixture
async def scene(desk: Desk, shop: Shop, database: Database) -> AsyncIterator[Till]:
    """Everything that may be stored of somebody, and another customer who did the same."""
    scene = Till(desk, shop)
    for email, name, mark in ((EMAIL, NAME, "z"), ("ada@example.com", "Ada Lovelace", "a")):
        mine = email == EMAIL
        assert isinstance(await buy(scene, f"{mark}-once", email, name, number=DECLINED), Refused)
        assert await buy(scene, f"{mark}-once", email, name) == Paid()
        assert await buy(scene, f"{mark}-club", email, name, terms=MONTHLY) == Paid()
        await open_order(scene, f"{mark}-left", email, name)
        payment = await shopfront.payment_of(database, shop, f"{mark}-once")
        await refund(desk, shop, payment, Decimal(4), requested_by="api", request_key=f"{mark}-1", now=utc_now())
        await database.execute(
            "insert into delivery (merchant_id, live, payment_id, status, type, carrier, tracking_id, tracking_url,"
            " details, reason, product_description, attachments, shipping_address, digest, created_at) values ($1,"
            " false, $2, 'delivered', 'physical', 'DHL', $3, 'https://dhl.example/' || $3, $4, $4, $4, $5, $6, '',"
            " now())",
            shop.merchant_id, payment, "PARCEL0461" if mine else "PARCEL1", "Left with the neighbour" if mine else "x",
            json.dumps([name]), json.dumps({"street": "Anchor Lane 9" if mine else "Elsewhere", "name": name}),
        )  # fmt: skip
        await log_rejected_form(
            database, shop, Malformed(f'email "{email}" is odd', "email"), {"email": email, "amount": "1"}, utc_now()
        )
        await answer_once(scene, mark, {"user": {"email": email}})
    await breaking.say(database, "merchant", {"id": shop.merchant_id}, test_mails=True)
    await tell_events(database, real_now=utc_now(), keep_test=True)
    await mail_team(scene, "alert", {"reason": f"{NAME.upper()} says no", "amount": "10"})
    await acknowledge(scene)
    yield scene
    # The next test looks through the whole database.
    with suppress(NotFound):
        await erase_subject(scene, again=True)


async def end_club(scene: Till, order: str = "z-club") -> None:
    subscription = await scene.database.fetchval(
        "select id from subscription where merchant_id = $1 and init_merchant_order_id = $2",
        scene.shop.merchant_id,
        order,
    )
    await cancel(scene.database, scene.shop, subscription, by="customer", now=utc_now())
    await acknowledge(scene)


async def found_in(database_url: str, secrets: tuple[str, ...] = SECRETS) -> list[str]:
    text = (await dump(database_url)).lower()
    ways = {secret: (secret.lower(), secret.lower().encode().hex()) for secret in secrets}
    return [secret for secret, written in ways.items() if any(way in text for way in written)]


@long
async def test_a_dump_of_the_database_finds_nothing_of_who_was_erased(scene: Till, database_url: str) -> None:
    await end_club(scene)
    assert await scene.problems() == []
    assert await found_in(database_url) == [one for one in SECRETS if one != "he signed for it"], "all was there before"
    ledger = await scene.rows("ledger_entry")
    others = await scene.database.fetch("select * from customer where email = 'ada@example.com' order by id")
    done = await erase_subject(scene)
    assert await found_in(database_url) == []
    assert await scene.rows("ledger_entry") == ledger
    assert await scene.problems() == []
    assert await scene.database.fetch("select * from customer where email = 'ada@example.com' order by id") == others
    assert done.orders_left == ()
    touched = {kind for kind, rows in done.rows.items() if rows}
    assert touched >= {
        "customers", "cards", "checkouts", "attempts", "subscriptions", "deliveries", "pingbacks",
        "pingback_attempts", "refused_forms", "api_calls", "mails", "mails_to_others",
    }  # fmt: skip
    assert (await dump(database_url)).count("ada@example.com") > 10, "the other customer is as before"


async def test_rows_of_pingbacks_and_checkouts_stay_with_what_was_sold(scene: Till) -> None:
    await end_club(scene)
    before = await scene.database.fetch(
        "select * from pingback where merchant_id = $1 order by id", scene.shop.merchant_id
    )
    await erase_subject(scene)
    after = await scene.database.fetch(
        "select * from pingback where merchant_id = $1 order by id", scene.shop.merchant_id
    )
    assert [row["id"] for row in after] == [row["id"] for row in before]
    payload = json.loads(next(row["payload"] for row in after if "z-once" in row["payload"]))
    was = json.loads(next(row["payload"] for row in before if "z-once" in row["payload"]))
    assert payload["user"] == dict.fromkeys(was["user"], "erased")
    assert payload["payment_order"] == was["payment_order"], "what was paid stays as it was told"
    assert list(payload) == list(was)
    checkout = await scene.database.fetchrow(
        "select * from checkout where merchant_id = $1 and merchant_order_id = 'z-left'", scene.shop.merchant_id
    )
    assert (checkout["email"], checkout["description"]) == ("erased", "erased")
    assert checkout["success_url"] == "https://shop.example/"
    assert json.loads(checkout["parameters"]) == {
        "merchant_order_id": "z-left", "email": "erased", "customer": "erased", "note": "erased", "quantity": "2",
    }  # fmt: skip
    assert checkout["expires_at"] <= utc_now(), "what was still open is closed"


async def test_what_is_kept_of_a_request_does_not_confirm_a_guess(scene: Till) -> None:
    await end_club(scene)
    query = "select {} from {} where merchant_id = $1 and {} order by id"
    mine = (
        query.format("request_digest as d", "checkout", "merchant_order_id like 'z-%'"),
        query.format("digest as d", "delivery", "carrier = 'DHL' and payment_id = (select min(payment_id) from delivery"
                     " where merchant_id = $1)"),
    )  # fmt: skip
    before = [[row["d"] for row in await scene.database.fetch(one, scene.shop.merchant_id)] for one in mine]
    await erase_subject(scene)
    after = [[row["d"] for row in await scene.database.fetch(one, scene.shop.merchant_id)] for one in mine]
    for old, new in zip(before, after, strict=True):
        assert len(old) == len(new) > 0
        assert not set(old) & set(new)


async def test_the_same_form_sent_again_is_not_open_to_be_paid_twice(scene: Till) -> None:
    await end_club(scene)
    await erase_subject(scene)
    with pytest.raises(Conflict):
        await buy(scene, "z-once")


async def test_a_running_subscription_is_in_the_way_unless_it_is_ended_first(scene: Till, database_url: str) -> None:
    with pytest.raises(Conflict, match="still running: subscription"):
        await erase_subject(scene)
    assert "quill.example" in await found_in(database_url)
    with pytest.raises(Conflict, match="pingbacks still to be sent: 1"):
        await erase_subject(scene, end=True)
    assert (
        await scene.database.fetchval(
            "select count(*) from subscription where merchant_id = $1 and state = 'Cancelled'", scene.shop.merchant_id
        )
        == 1
    )
    await acknowledge(scene)
    await erase_subject(scene)
    assert await found_in(database_url) == []
    assert await scene.problems() == []


async def test_an_open_outcome_is_in_the_way(scene: Till) -> None:
    await end_club(scene)
    await breaking.say(
        scene.database,
        "payment_attempt",
        {"merchant_id": scene.shop.merchant_id, "client_address": "198.51.100.177"},
        state="processing",
    )
    with pytest.raises(Conflict, match="not known yet"):
        await erase_subject(scene)


async def test_an_order_names_its_customer(scene: Till, database_url: str) -> None:
    await end_club(scene)
    await erase(scene.database, Subject(scene.shop.merchant_id, order="z-once"), now=utc_now())
    assert await found_in(database_url) == []


async def test_an_order_reference_that_holds_the_address_stays_and_is_named(scene: Till) -> None:
    order = "left@feather.example-1"
    assert await buy(scene, order, "left@feather.example", "Other Person") == Paid()
    await acknowledge(scene)
    subject = Subject(scene.shop.merchant_id, email="left@feather.example")
    assert (await erase(scene.database, subject, now=utc_now())).orders_left == (order,)


async def test_nobody_is_nobody(scene: Till, other_shop: Shop) -> None:
    for subject in (
        Subject(scene.shop.merchant_id, email="nobody@quill2.example"),
        Subject(other_shop.merchant_id, email=EMAIL),
        Subject(scene.shop.merchant_id, order="nothing"),
    ):
        with pytest.raises(NotFound):
            await erase(scene.database, subject, now=utc_now())
        with pytest.raises(NotFound):
            await export(scene.database, subject, now=utc_now())
    for wrong in ({}, {"email": "a@b.example", "order": "1"}, {"email": "erased"}, {"email": "%"}):
        with pytest.raises(Malformed):
            Subject(1, **wrong)


async def test_an_address_with_signs_of_a_search_finds_only_itself(scene: Till) -> None:
    """The underscore in the address stands for itself, not for any letter."""
    assert await buy(scene, "x-once", "underxscore@feather.example", "Somebody Else") == Paid()
    assert await buy(scene, "y-once", "under_score@feather.example", "Somebody Other") == Paid()
    await acknowledge(scene)
    await erase(scene.database, Subject(scene.shop.merchant_id, email="under_score@feather.example"), now=utc_now())
    found = await scene.database.fetch(
        "select parameters ->> 'email' as email from checkout where merchant_id = $1"
        " and merchant_order_id in ('x-once', 'y-once') order by merchant_order_id",
        scene.shop.merchant_id,
    )
    assert [row["email"] for row in found] == ["underxscore@feather.example", "erased"]


NEIGHBOURS = (
    ("fr.lee@feather.example", "Freya Leeward"), ("a-lee@feather.example", "Anna Lee"),
    ("b+lee@feather.example", "Bo Lee"), ("lee@feather.example.org", "Lee Organ"),
    ("xlee@feather.example", "Xavier Li"), ("fr_lee@feather.example", "Frida Lee"),
    ("m.-lee@feather.example", "Mo Lee"), ("lee@feather.example-op.org", "Lee Opal"),
)  # fmt: skip
"""People whose addresses hold that of lee@feather.example, and whose names hold theirs, Al Li."""


async def test_who_has_a_longer_address_keeps_what_is_theirs_and_is_handed_out_to_nobody(scene: Till) -> None:
    """Their checkouts stay open, and a call of the shop's API is answered again as before."""
    await buy(scene, "lee", "lee@feather.example", "Al Li")
    waiting = {order: await open_order(scene, order, order, name) for order, name in NEIGHBOURS}
    for order, name in (*NEIGHBOURS, ("owner@shop.example", "Val Lindt")):
        said = {"text": f"a form of {name}, {order}", "link": f"https://shop.example/?who={order.replace('@', '%40')}"}
        await log_rejected_form(scene.database, scene.shop, Malformed(f"{name} is odd"), said, utc_now())
        await answer_once(scene, order, said)
        await mail_team(scene, order, said)
    await acknowledge(scene)
    subject = Subject(scene.shop.merchant_id, email="lee@feather.example")
    text = json.dumps(await export(scene.database, subject, now=utc_now())).lower()
    assert [one for both in NEIGHBOURS for one in both if one.lower() in text] == []
    asked = (
        "select * from rejected_form where merchant_id = $1 and fields ? 'text' order by id",
        "select * from api_call where merchant_id = $1 order by request_key",
        "select * from mail where merchant_id = $1 and facts ? 'text' order by id",
        "select * from checkout where merchant_id = $1 and merchant_order_id like '%@%' order by id",
    )
    before = [await scene.database.fetch(one, scene.shop.merchant_id) for one in asked]
    done = await erase(scene.database, subject, now=utc_now())
    assert (done.rows["checkouts"], done.rows["api_calls"], done.rows["refused_forms"]) == (1, 0, 0)
    assert [await scene.database.fetch(one, scene.shop.merchant_id) for one in asked] == before
    for order, link in waiting.items():
        assert await shopfront.pay(scene.desk, link, VISA, email=order) == Paid()


@pytest.mark.parametrize(
    "text",
    ["lee@feather.example", "<LEE@feather.example>", "from lee@feather.example.", "?m=lee%40feather.example&x",
     "%3Dlee%40feather.example", "so:\nlee@feather.example", "-lee@feather.example-", "so:\n...lee@feather.example, x",
     "?m=%20_lee%40feather.example-1", "Al Li", "Hi, AL LI!", "n=Al+Li&x", "%3DAl%20Li"],
)  # fmt: skip
async def test_an_address_or_name_is_found_wherever_it_stands_in_a_text(scene: Till, text: str) -> None:
    await buy(scene, "lee", "lee@feather.example", "Al Li")
    await log_rejected_form(scene.database, scene.shop, Malformed("odd"), {"text": text}, utc_now())
    await acknowledge(scene)
    await erase(scene.database, Subject(scene.shop.merchant_id, email="lee@feather.example"), now=utc_now())
    left = await scene.database.fetchval(
        "select fields ->> 'text' from rejected_form where merchant_id = $1 and fields ? 'text'", scene.shop.merchant_id
    )
    assert left == "erased"


async def test_each_of_many_names_of_one_address_is_found(scene: Till) -> None:
    """A family that shares an address, or one who writes their name otherwise each time."""
    names = [f"Lee of the {one}th Feather" for one in range(40)]
    for name in names:
        await open_order(scene, f"lee-{name}", "lee@feather.example", name)
    for name in (*names, "Lee of the 400th Feather"):
        await log_rejected_form(scene.database, scene.shop, Malformed("odd"), {"text": f"for {name}."}, utc_now())
        await answer_once(scene, f"lee {name}", {"text": name})
        await mail_team(scene, name, {"text": name})
    subject = Subject(scene.shop.merchant_id, email="lee@feather.example")
    rows = await export(scene.database, subject, now=utc_now())
    assert [len(rows[kind]) for kind in ("refused_forms", "api_calls")] == [40, 40]
    done = (await erase(scene.database, subject, now=utc_now())).rows
    assert [done[kind] for kind in ("refused_forms", "api_calls", "mails_to_others")] == [40, 40, 40]


async def test_a_name_is_found_in_whatever_case_and_script(scene: Till, database_url: str) -> None:
    """`İ` becomes other letters in Python than in PostgreSQL, and addresses of pages hold capital
    letters as other numbers than small ones.
    """
    name, email = "İrem Özdemiroğlu", "irem@plume.example"
    await buy(scene, "irem", email, name)
    link = f"https://shop.example/thanks?who={quote_plus(name)}"
    await log_rejected_form(scene.database, scene.shop, Malformed("odd"), {"success_url": link}, utc_now())
    await mail_team(scene, "irem", {"reason": f"{name} and {name.upper()} say no", "amount": "10"})
    await acknowledge(scene)
    await erase(scene.database, Subject(scene.shop.merchant_id, email=email), now=utc_now())
    assert await found_in(database_url, ("plume.example", "zdemiroğlu", "zdemiro%c4%9flu")) == []


async def test_an_export_holds_everything_and_no_secret(scene: Till) -> None:
    rows = await export(scene.database, subject_of(scene), now=utc_now())
    text = json.dumps(rows).lower()
    assert [one for one in SECRETS if one.lower() not in text] == ["he signed for it"]
    assert "ada@example.com" not in text
    for secret in ("number_sealed", "request_digest", "token", "idempotency_key", "fingerprint"):
        assert f'"{secret}"' not in text, secret
    assert {kind for kind, found in rows.items() if found} >= {
        "customers", "cards", "checkouts", "payments", "attempts", "subscriptions", "movements", "deliveries",
        "pingbacks", "pingback_attempts", "refused_forms", "api_calls", "mails",
    }  # fmt: skip
    kept = [card["number_is_kept"] for card in rows["cards"]]
    assert sorted(map(bool, kept)) == [False, False, True]


async def test_an_export_holds_mails_about_the_names_of_both_sides(scene: Till) -> None:
    """Who tried the shop under another name than they bought under is handed out the mails about
    either, once each.
    """
    live = Till(scene.desk, replace(scene.shop, live=True))
    await open_order(live, "z-live", EMAIL, "Aurelius Brambleworth")
    await mail_team(scene, "live", {"reason": "Aurelius Brambleworth says no", "amount": "10"})
    await mail_team(scene, "both", {"reason": f"Aurelius Brambleworth, or {NAME}, says no", "amount": "10"})
    rows = await export(scene.database, subject_of(scene), now=utc_now())
    facts = [json.dumps(row["facts"]) for row in rows["mails"] if row["kind"] == "chargeback_alert"]
    told = [json.loads(one)["reason"] for one in facts]
    assert sorted(told) == [
        "Aurelius Brambleworth says no", f"Aurelius Brambleworth, or {NAME}, says no", f"{NAME.upper()} says no",
    ]  # fmt: skip


async def test_an_export_holds_what_a_customer_wanted_of_a_subscription(scene: Till) -> None:
    running = await scene.database.fetch(
        "select id, live from subscription where merchant_id = $1 and state = 'Active'", scene.shop.merchant_id
    )
    for row in running:
        await pause(scene.database, Shop(scene.shop.merchant_id, row["live"]), row["id"], by="customer", now=utc_now())
    exported = (await export(scene.database, subject_of(scene), now=utc_now()))["subscriptions"]
    assert [(one["type"], one["asked_by"]) for of in exported for one in of["changes"]] == [("resume", "customer")]  # type: ignore[attr-defined]


async def test_a_trial_without_a_card_is_handed_out_and_erased(scene: Till, database_url: str) -> None:
    await change_merchant(scene.database, scene.shop.merchant_id, trials_without_card=True)
    terms = replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day")))
    checkout = await scene.find(await open_order(scene, "z-trial", EMAIL, NAME, terms))
    guest = Guest(EMAIL, "198.51.100.177", agreed="ok")
    assert await begin_free_trial(scene.desk, checkout, guest, now=checkout.now) == Paid()
    await ask_for_cards(scene.database, real_now=checkout.now + timedelta(days=13), keep_test=True)
    rows = await export(scene.database, subject_of(scene), now=utc_now())
    (trial,) = [one for one in rows["subscriptions"] if one["state"] == "Trial"]
    assert [one["asked_by"] for one in trial["changes"]] == ["no_card"]  # type: ignore[attr-defined]
    (card,) = [one for one in rows["cards"] if one["id"] == trial["card_id"]]
    assert (card["number_is_kept"], card["last4"]) == (False, "")
    assert "card_wanted" in {one["kind"] for one in rows["mails"]}
    assert {one["merchant_order_id"] for one in rows["payments"]} >= {"z-trial"}
    await end_club(scene)
    with pytest.raises(Conflict, match="still running: subscription"):
        await erase_subject(scene)
    await end_club(scene, "z-trial")
    await erase_subject(scene)
    assert await found_in(database_url) == []
    assert await scene.problems() == []


async def test_the_audit_log_keeps_who_was_handed_out_and_erased_as_ids(scene: Till) -> None:
    await end_club(scene)
    await export(scene.database, subject_of(scene), now=utc_now())
    await erase_subject(scene)
    entries = await scene.database.fetch(
        "select action, subject, details from audit_entry where merchant_id = $1", scene.shop.merchant_id
    )
    assert {row["action"] for row in entries} == {"customer_exported", "customer_erased"}
    assert all(row["subject"].startswith("customer ") and row["details"] == "{}" for row in entries)


async def test_after_a_restore_the_list_erases_again(
    scene: Till, database_url: str, vault: Vault, tmp_path: Path
) -> None:
    await end_club(scene)
    erasures = ErasureList(tmp_path / "erasures.jsonl", vault)
    backup = await snapshot(scene)
    await erase_subject(scene, remember=lambda: erasures.remember(subject_of(scene), now=utc_now()))
    kept = erasures.path.read_text()
    assert not [one for one in SECRETS if one.lower() in kept.lower()]
    assert await still_there(scene.database, erasures, erasures.read()) == []

    await restore(scene, backup)
    assert "quill.example" in await found_in(database_url)
    subjects = await still_there(scene.database, erasures, erasures.read())
    assert subjects == [Subject(scene.shop.merchant_id, email=EMAIL.lower())]
    for subject in subjects:
        await erase(scene.database, subject, again=True, now=utc_now())
    assert await found_in(database_url) == []
    assert await scene.problems() == []
    assert (await dump(database_url)).count("ada@example.com") > 10


TABLES = ("customer", "card", "checkout", "pingback", "mail", "delivery", "payment_attempt", "subscription")


async def snapshot(scene: Till) -> dict[str, str]:
    """The merchant's rows, as a backup would hold them."""
    return {
        table: await scene.database.fetchval(
            f"select coalesce(jsonb_agg(to_jsonb(t)), '[]') from {table} t where merchant_id = $1",
            scene.shop.merchant_id,
        )
        for table in TABLES
    }


async def restore(scene: Till, backup: dict[str, str]) -> None:
    async with scene.database.acquire() as connection, connection.transaction(), unguarded(connection):
        for table, rows in backup.items():
            await connection.execute(f"delete from {table} where merchant_id = $1", scene.shop.merchant_id)
            await connection.execute(
                f"insert into {table} select * from jsonb_populate_recordset(null::{table}, $1)", rows
            )


async def test_a_list_says_nothing_without_the_deployments_key(tmp_path: Path, vault: Vault) -> None:
    path, subject = tmp_path / "erasures.jsonl", Subject(1, email=EMAIL)
    ErasureList(path, vault).remember(subject, now=utc_now())
    (line,) = ErasureList(path, vault).read()
    other = replace(ErasureList(path, vault), vault=Vault({"k": b"k" * 32}, generate_secret().encode()))
    assert line.fingerprint == ErasureList(path, vault).fingerprint(Subject(1, email=EMAIL.lower()))
    assert line.fingerprint not in (other.fingerprint(subject), ErasureList(path, vault).fingerprint(Subject(2, EMAIL)))
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(path.read_bytes() + b'{"at":"2026')
    assert ErasureList(path, vault).read() == [line], "a line that a crash cut off was followed by no erasure"


@pytest.mark.parametrize(
    "content",
    [b"nonsense\n", b"nonsense", b"\xff\xfe{\n", b'{"at":"\xff"}\n', b'{\n  "to": 1\n}\n', b'{"at":1}\n', b"[]\n",
     b'{"at":"2026-11-30T00:00:00Z","merchant_id":1,"fingerprint":"ab"},\n', b'\0\0gerprint":"ab"}\n'],
)  # fmt: skip
async def test_what_is_no_list_of_erasures_is_not_read_as_one(tmp_path: Path, vault: Vault, content: bytes) -> None:
    path = tmp_path / "erasures.jsonl"
    path.write_bytes(content)
    with pytest.raises(SetupError, match="no list of erasures"):
        ErasureList(path, vault).read()


@pytest.mark.parametrize("kept", [1, 40, -1])
async def test_a_line_of_the_list_that_a_crash_cut_off_hides_no_other(tmp_path: Path, vault: Vault, kept: int) -> None:
    erasures = ErasureList(tmp_path / "erasures.jsonl", vault)
    erasures.remember(Subject(1, email=EMAIL), now=utc_now())
    line = erasures.path.read_bytes()
    erasures.path.write_bytes(line + line[:-1][:kept])
    erasures.remember(Subject(2, order="7"), now=utc_now())
    assert [line.merchant_id for line in erasures.read()] == [1, 2]


@pytest.mark.parametrize("kept", [0, 1, 4, 40, -1])
@pytest.mark.parametrize("after", [b"", b"\0" * 9, b"\0" * 9 + b"\n", b"\r\n"])
async def test_half_a_line_before_another_hides_none(tmp_path: Path, vault: Vault, kept: int, after: bytes) -> None:
    """So earlier versions wrote after a crash, and file systems fill up what a power loss took."""
    erasures = ErasureList(tmp_path / "erasures.jsonl", vault)
    erasures.remember(Subject(1, email=EMAIL), now=utc_now())
    line = erasures.path.read_bytes()
    erasures.path.write_bytes(line + line[:-1][:kept] + after + line + b"\0" * 9)
    erasures.remember(Subject(2, order="7"), now=utc_now())
    assert [line.merchant_id for line in erasures.read()] == [1, 1, 2]


async def test_a_line_of_the_list_counts_without_its_end(tmp_path: Path, vault: Vault) -> None:
    """An editor or a shell may have taken the last one away."""
    erasures = ErasureList(tmp_path / "erasures.jsonl", vault)
    erasures.remember(Subject(1, email=EMAIL), now=utc_now())
    erasures.path.write_bytes(erasures.path.read_bytes().strip())
    assert [line.merchant_id for line in erasures.read()] == [1]


def fill_disk(erasures: ErasureList) -> None:
    """Nobody is noted, for want of room."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (erasures.path.stat().st_size + 20, limits[1]))
    try:
        with pytest.raises(SetupError, match="nothing was erased"):
            erasures.remember(Subject(2, order="7"), now=utc_now())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


async def test_a_full_disk_leaves_no_half_of_a_line_in_the_list(tmp_path: Path, vault: Vault) -> None:
    erasures = ErasureList(tmp_path / "erasures.jsonl", vault)
    erasures.remember(Subject(1, email=EMAIL), now=utc_now())
    before = erasures.path.read_bytes()
    fill_disk(erasures)
    assert erasures.path.read_bytes() == before


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
async def test_a_file_system_without_locks_keeps_the_list_too(
    tmp_path: Path, vault: Vault, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """What is left of a line there may be behind another's, so that it stays, and hides none."""

    def refuse(*_: object) -> None:
        raise OSError(number, "no locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)
    erasures = ErasureList(tmp_path / "erasures.jsonl", vault)
    erasures.remember(Subject(1, email=EMAIL), now=utc_now())
    before = erasures.path.read_bytes()
    fill_disk(erasures)
    assert len(erasures.path.read_bytes()) == len(before) + 20
    erasures.remember(Subject(3, order="7"), now=utc_now())
    assert [line.merchant_id for line in erasures.read()] == [1, 3]


async def test_a_list_on_a_broken_disk_is_not_written(
    tmp_path: Path, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(fcntl, "flock", refuse)
    erasures = ErasureList(tmp_path / "erasures.jsonl", vault)
    with pytest.raises(SetupError, match="nothing was erased"):
        erasures.remember(Subject(1, email=EMAIL), now=utc_now())
    assert erasures.read() == []


async def test_nothing_is_erased_that_cannot_be_noted(scene: Till, vault: Vault, tmp_path: Path) -> None:
    await end_club(scene)
    erasures = ErasureList(tmp_path / "gone" / "erasures.jsonl", vault)
    with pytest.raises(SetupError, match="nothing was erased"):
        await erase_subject(scene, remember=lambda: erasures.remember(subject_of(scene), now=utc_now()))
    assert (
        await scene.database.fetchval(
            "select count(*) from customer where merchant_id = $1 and erased_at is not null", scene.shop.merchant_id
        )
        == 0
    )


async def test_no_mail_goes_to_who_was_erased(scene: Till) -> None:
    await end_club(scene)
    await erase_subject(scene)
    pingback = await scene.database.fetchval(
        "select id from pingback where merchant_id = $1 and payload like '%z-once%' and event = 'payment'",
        scene.shop.merchant_id,
    )
    await resend(scene.database, scene.shop, pingback, now=utc_now())
    payment = await scene.database.fetchval("select payment_id from pingback where id = $1", pingback)
    await refund(scene.desk, scene.shop, payment, Decimal(1), requested_by="api", request_key="later", now=utc_now())
    await tell_events(scene.database, real_now=utc_now(), keep_test=True)
    assert (
        await scene.database.fetchval(
            "select count(*) from mail where merchant_id = $1 and recipient = 'erased'", scene.shop.merchant_id
        )
        == 0
    )


async def test_a_subscriber_of_another_shop_with_the_same_address_is_left_alone(scene: Till, other_shop: Shop) -> None:
    there = replace(scene, shop=other_shop)
    assert await buy(there, "z-once") == Paid()
    await end_club(scene)
    await erase_subject(scene)
    assert (
        await scene.database.fetchval(
            "select count(*) from customer where merchant_id = $1 and email = $2", other_shop.merchant_id, EMAIL
        )
        == 1
    )
    await acknowledge(there)
    await erase(scene.database, Subject(other_shop.merchant_id, email=EMAIL), now=utc_now())


async def test_who_saved_a_card_is_handed_out_and_erased_with_it(
    desk: Desk, shop: Shop, bank: Bank, database: Database, database_url: str
) -> None:
    till = Till(desk, shop)
    await set_back.no_codes_counted(database)
    shopper = await shopfront.become_known(till.desk, till.shop, EMAIL)
    await shopfront.become_known(till.desk, till.shop, "ada@example.com")
    card = await shopfront.save_card(till.desk, bank, shopper)
    wanted = Wanted(card, "power-1", Decimal(20), "USD", f"Power for {EMAIL}")
    await charge_saved(till.desk, till.shop, wanted, request_key="one", now=utc_now())
    await acknowledge(till)
    subject = Subject(till.shop.merchant_id, email=EMAIL)
    rows = await export(database, subject, now=utc_now())
    assert [row["email"] for row in rows["shoppers"]] == [EMAIL]
    assert [row["charge_wording"] for row in rows["instruments"]] == ["charge it"]
    assert "seed" not in json.dumps([*rows["shoppers"]])
    await erase(database, subject, now=utc_now())
    assert await found_in(database_url, ("zebediah",)) == []
    left = "select count(*) from {} where merchant_id = $1"
    sealed = left.format("card") + " and number_sealed is not null"
    assert await database.fetchval(sealed, till.shop.merchant_id) == 0
    assert await database.fetchval(left.format("shopper_session"), till.shop.merchant_id) == 1, "another's stays"
    with pytest.raises(NotFound):
        await charge_saved(till.desk, till.shop, wanted, request_key="two", now=utc_now())
    anew = await shopfront.become_known(till.desk, till.shop, EMAIL)
    assert anew.id != shopper.id, "who proves the address anew finds nothing of before"
    await erase(database, subject, now=utc_now())
