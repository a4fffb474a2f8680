from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from babel import Locale
from babel.dates import format_date
from tests.markup import Markup
from tests.web.mails.every_mail import ADDRESSES, FACTS, NOW, mail_of

from paydesk.adapters.mail import Letter, MailRefused
from paydesk.adapters.mail.letters import compose
from paydesk.domain.accounts.notices import Mail
from paydesk.domain.business.colours import READABLE, contrast
from paydesk.domain.mail.kinds import CUSTOMER_KINDS, LINK_KINDS, MailKind
from paydesk.domain.merchants.imprints import Imprint
from paydesk.web.mails.writing import CATALOGUES, KINDS, write

LANGUAGES = CATALOGUES.languages
each_kind = pytest.mark.parametrize("kind", MailKind)
each_language = pytest.mark.parametrize("language", LANGUAGES)


def letter(kind: MailKind, language: str = "en", **changes: object) -> Letter:
    return write(mail_of(kind, language, **changes), ADDRESSES)


def test_every_kind_that_is_queued_has_words() -> None:
    assert set(KINDS) == set(MailKind) == set(FACTS)
    assert {str(kind) for kind in Mail} <= {str(kind) for kind in MailKind}


@each_language
def test_who_has_to_ship_sooner_is_told_why(language: str) -> None:
    usual, sooner = (letter(MailKind.void_reminder, language, **more) for more in ({}, {"facts": {"sooner": True}}))
    assert usual.subject != sooner.subject
    assert "1701" in sooner.subject
    assert usual.text.splitlines()[-5:] == sooner.text.splitlines()[-5:]


@each_language
def test_every_kind_is_whole_in_every_language(language: str) -> None:
    for kind in MailKind:
        written = letter(kind, language)
        for form in (written.subject, written.text, unescape(written.html)):
            assert form.strip(), kind
            assert not re.search(r"%\(|\{\{|\bNone\b|undefined", form), (kind, form)
        assert written.language == language


@each_language
def test_text_and_html_say_the_same(language: str) -> None:
    for kind in MailKind:
        written = letter(kind, language)
        shown = re.sub(r"[\s\u2068\u2069]+", "", Markup(written.html).text)
        for line in written.text.splitlines():
            for part in line.removeprefix("-- ").split(": "):
                assert re.sub(r"[\s\u2068\u2069]+|:$", "", part) in shown, (kind, part)


@each_language
def test_no_card_is_spoken_of_where_a_bank_account_is_charged(language: str) -> None:
    kinds = (MailKind.subscription_started, MailKind.renewal_failed, MailKind.subscription_stopped, MailKind.refund)
    told: list[tuple[MailKind, dict[str, Any]]] = [(kind, {}) for kind in kinds]
    for kind, more in [*told, (MailKind.receipt, {"reserved": True})]:
        by_card, by_bank = (letter(kind, language, facts={**more, "brand": brand}).text for brand in ("visa", "bank"))
        assert by_card != by_bank, kind
        if language == "en":
            assert "card" in by_card.replace("/card", "").lower()
            assert "card" not in by_bank.replace("/card", "").lower()


@pytest.mark.parametrize(
    ("brand", "last4", "row"),
    [
        ("visa", "4242", "Card: Visa ••••\u00a04242"),
        ("bank", "", "Payment method: Bank account"),
        ("slow_bank", "3000", "Payment method: Bank account ••••\u00a03000"),
        ("other", "", "Payment method: Another method"),
    ],
)
def test_what_is_charged_is_called_what_it_is(brand: str, last4: str, row: str) -> None:
    for kind in (MailKind.receipt, MailKind.renewal_receipt, MailKind.renewal_failed, MailKind.refund):
        assert row in letter(kind, facts={"brand": brand, "last4": last4}).text.splitlines()


@each_language
def test_html_says_its_language_and_direction_and_loads_nothing(language: str) -> None:
    direction = Locale.parse(language, sep="-").text_direction
    for kind in MailKind:
        written = letter(kind, language)
        parsed = Markup(written.html)
        assert parsed.found[0] == ("html", {"lang": language, "dir": direction}), kind
        strangers = {"img", "link", "script", "iframe", "form", "object", "base"}
        assert not strangers.intersection(tag for tag, _ in parsed.found), kind
        assert not re.search(r"url\(|@import|src=", written.html), kind
        assert "prefers-color-scheme: dark" in written.html, kind


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "en"])
def test_every_kind_is_said_in_other_words_than_english(language: str) -> None:
    assert [kind for kind in MailKind if letter(kind, language).subject == letter(kind).subject] == []


@each_language
def test_money_and_dates_are_written_as_in_the_language(language: str) -> None:
    text = letter(MailKind.receipt, language).text
    texts = CATALOGUES.texts_for(language)
    assert texts.money(Decimal("1234.50"), "USD") in text
    assert format_date(NOW, "long", Locale.parse(language, sep="-")) in text


def test_amounts_keep_their_order_in_a_text_from_right_to_left() -> None:
    assert ": \u20681,234.50\u00a0USD\u2069\n" in letter(MailKind.receipt, "ar").text
    assert "\u2068" not in letter(MailKind.receipt, "en").text


def test_a_regions_customer_gets_the_language_with_its_numbers() -> None:
    assert "1’234.50\u00a0USD" in letter(MailKind.receipt, "de-CH").text
    assert letter(MailKind.receipt, "xx").language == "en"


@each_kind
def test_customers_hear_from_their_shop_and_can_answer_it(kind: MailKind) -> None:
    written = letter(kind)
    to_customer = kind in CUSTOMER_KINDS
    assert (written.sender_name, written.reply_to) == (
        ("Zyx via Paydesk", "owner@zyx.example") if to_customer else ("", "")
    )


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        (MailKind.subscription_started, "https://pay.example/portal/t1-abc"),
        (MailKind.renewal_receipt, "https://pay.example/portal/t1-abc"),
        (MailKind.renewal_failed, "https://pay.example/portal/pay/2/t1-def"),
        (MailKind.subscription_cancelled, "https://pay.example/portal/t1-abc"),
        (MailKind.subscription_stopped, "https://pay.example/portal/t1-abc"),
        (MailKind.shipment, "https://zoomr.example/Z1"),
        (MailKind.invitation, "https://pay.example/account/invitation/tok-en"),
        (MailKind.confirm_email, "https://pay.example/account/email/tok-en"),
        (MailKind.reset_password, "https://pay.example/account/password/tok-en"),
        (MailKind.security_notice, "https://pay.example/account/security"),
        (MailKind.void_reminder, "https://pay.example/account/7/deliveries/13330"),
        (MailKind.authorization_voided, "https://pay.example/account/7/payments/13330"),
        (MailKind.chargeback_alert, "https://pay.example/account/7/disputes/41"),
        (MailKind.failing_endpoint, "https://pay.example/account/7/pingbacks"),
        (MailKind.profile_accepted, "https://pay.example/account/7/overview"),
        (MailKind.profile_refused, "https://pay.example/account/7/settings/profile"),
        (MailKind.merchant_suspended, "https://pay.example/account/7/overview"),
        (MailKind.merchant_restored, "https://pay.example/account/7/overview"),
    ],
)
def test_the_button_leads_where_it_should(kind: MailKind, link: str) -> None:
    written = letter(kind)
    assert f"\n{link}\n" in written.text
    assert Markup(written.html).links() == [link]


def test_what_is_open_of_a_subscription_with_an_older_link_is_paid_in_its_portal() -> None:
    written = letter(MailKind.renewal_failed, facts={"paying": None})
    assert Markup(written.html).links() == ["https://pay.example/portal/t1-abc/card"]


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (None, "If the next tries fail too, the subscription ends."),
        ("cancel", "If the next tries fail too, the subscription ends."),
        ("keep_open", "Nothing is charged for later periods until this one is paid."),
        ("pause", "If the charge keeps failing, your subscription is paused until you pay."),
    ],
)
def test_a_failed_charge_says_what_comes_of_the_subscription(end: str | None, said: str) -> None:
    assert said in letter(MailKind.renewal_failed, facts={"end": end}).text.replace("\n", " ")


def test_mails_about_tests_say_so_and_lead_to_the_sandbox() -> None:
    written = letter(MailKind.subscription_started, live=False)
    assert written.subject.startswith("[Test] ")
    assert "This is a test" in written.text
    assert "https://pay.example/sandbox/portal/t1-abc" in written.text


def test_a_receipt_of_what_is_only_reserved_does_not_say_paid() -> None:
    written = letter(MailKind.receipt, facts={"reserved": True})
    assert "reserved on your card" in written.text
    assert "received your payment" not in written.text


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "%(amount)s %s %"]
)
def test_nothing_that_a_name_holds_becomes_markup_or_a_pattern(hostile: str) -> None:
    for kind in MailKind:
        facts = {
            name: hostile
            for name, value in FACTS[kind].items()
            if isinstance(value, str) and name not in ("amount", "currency") and not re.match(r"2030-|https:", value)
        }
        written = letter(kind, facts=facts, merchant_name=hostile)
        assert not {"script", "img"}.intersection(tag for tag, _ in Markup(written.html).found), kind
        assert hostile in written.text or hostile in written.subject or kind is MailKind.failing_endpoint, kind
        assert "49" not in written.text, kind


@each_kind
def test_a_name_of_before_the_rule_is_no_link_in_any_mail(kind: MailKind) -> None:
    hostile = "Locked: see https://evil.example/x or ada@evil.example"
    names = dict.fromkeys(("name", "shop", "by", "invited_by", "merchant_name"), hostile)
    written = letter(kind, merchant_name=hostile, facts=names)
    for said in (written.subject, written.text, written.html, written.sender_name):
        assert not re.search(r"evil\.example|https://evil|@evil", said)
    if kind in CUSTOMER_KINDS:
        assert written.sender_name == "Locked see https evil example x or ada evil example via Paydesk"


@each_kind
def test_no_name_adds_a_header(kind: MailKind) -> None:
    hostile = "Zyx\r\nBcc: victim@people.example\r\n\r\nbody"
    written = letter(kind, merchant_name=hostile, facts={"package": hostile, "merchant_order_id": hostile})
    message = compose(written, mail_from="Paydesk <pay@desk.example>")
    assert message["Bcc"] is None
    assert "\n" not in str(message["Subject"]) + str(message["From"])


def test_a_tracking_link_that_is_no_web_address_is_not_a_link() -> None:
    written = letter(MailKind.shipment, facts={"tracking_url": "javascript:alert(1)"})
    assert "javascript" not in written.html + written.text


@pytest.mark.parametrize("missing", ["date_next", "terms_agreed", "brand", "last4", "name", "description"])
def test_what_is_not_known_is_left_out(missing: str) -> None:
    written = letter(MailKind.subscription_started, facts={missing: None})
    assert "None" not in written.text
    assert ": \n" not in written.text


@pytest.mark.parametrize(
    "what",
    ["second_factor_removed", "second_factor_reset", "second_factor_failed", "recovery_code_used", "something_new"],
)
def test_a_notice_says_what_was_done(what: str) -> None:
    subjects = {letter(MailKind.security_notice, facts={"what": other}).subject for other in (what, "password_changed")}
    assert len(subjects) == 2


@pytest.mark.parametrize("what", ["key_rotated", "key_ended", "bank_account_changed", "pingback_url_changed"])
def test_a_notice_about_a_shop_says_which_and_who_did_it(what: str) -> None:
    facts = {"what": what, "shop": "Corner Shop", "by": "Trillian", "pingback_url": "https://zyx.example/new"}
    text = letter(MailKind.security_notice, facts=facts).text
    assert "Shop: Corner Shop\nDone by: Trillian\nAddress: https://zyx.example/new\n" in text
    assert "If you or your team did this" in text
    assert "choose a new password at once, which ends your other sessions" in text
    assert "Your account was changed" not in text


def test_a_kind_without_words_is_an_error_and_not_an_empty_mail() -> None:
    with pytest.raises(ValueError, match="gossip"):
        write(replace(mail_of(MailKind.receipt), kind="gossip"), ADDRESSES)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(MailRefused):
        compose(letter(MailKind.receipt, recipient="nobody"), mail_from="Paydesk <pay@desk.example>")


@pytest.mark.parametrize("kind", sorted(LINK_KINDS))
def test_a_link_greets_nobody_by_what_a_stranger_typed(kind: MailKind) -> None:
    due = mail_of(kind)
    typed = replace(due, facts={**due.facts, "name": "Your account is locked"})
    written = write(typed, ADDRESSES)
    assert written.text.startswith("Hello,\n")
    assert "locked" not in written.text + written.html + written.subject


def test_what_a_customer_gets_looks_like_the_shops_checkout() -> None:
    look: dict[str, Any] = {"accent": "#1f5a43", "has_logo": True, "branded_at": NOW}
    shop, ours = letter(MailKind.renewal_failed, **look).html, letter(MailKind.invitation, **look).html
    assert "background:#1f5a43" in shop
    assert re.search(rf'<img [^>]*src="{ADDRESSES.live}/brand/7/\w+/logo" alt=""', shop)
    assert "<img" not in ours
    assert "#1f5a43" not in ours
    plain = letter(MailKind.renewal_failed).html
    assert "<img" not in plain
    assert "background:#1f5fbf" in plain


def test_a_dark_mail_shows_the_logo_for_dark_pages() -> None:
    look: dict[str, Any] = {"has_logo": True, "branded_at": NOW}
    one = write(mail_of(MailKind.receipt, **look), ADDRESSES).html
    assert "logo-dark" not in one
    assert ".logo { background: #ffffff;" in one, "it may be dark itself"
    two = write(mail_of(MailKind.receipt, **look, has_dark_logo=True), ADDRESSES).html
    assert re.search(r'<img class="by-night" src="[^"]+/logo-dark"', two)
    assert ".by-day { display: none !important; }" in two.partition("prefers-color-scheme: dark")[2]
    assert ".logo { background" not in two


def test_mails_to_customers_say_who_the_shop_is() -> None:
    said = Imprint("Corner Shop Ltd", "help@shop.example", "", "https://shop.example/terms", "")
    shop, ours = letter(MailKind.renewal_failed, imprint=said), letter(MailKind.invitation, imprint=said)
    assert "Corner Shop Ltd, help@shop.example" in shop.text
    assert "Terms and conditions: https://shop.example/terms" in shop.text
    assert 'href="https://shop.example/terms">Terms and conditions</a>' in shop.html
    assert "Privacy policy" not in shop.text
    assert "Corner Shop Ltd" not in ours.text + ours.html


@pytest.mark.parametrize("accent", ["#1f5a43", "#000000", "#7a0019", "#0a58ca"])
def test_a_button_in_the_shops_colour_can_be_read_by_day_and_by_night(accent: str) -> None:
    html = letter(MailKind.renewal_failed, accent=accent).html
    by_day = re.search(r"background:(#\w{6}); color:(#\w{6});\s+text-decoration", html)
    by_night = re.search(r"\.button \{ background: (#\w{6}) !important; color: (#\w{6})", html)
    assert by_day is not None
    assert by_night is not None
    assert all(contrast(*found.groups()) >= READABLE for found in (by_day, by_night))
