from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.standins.stripe_checkout import signature

from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.adapters.acquirers.notices import Notice, NoticeRefused
from paydesk.adapters.acquirers.stripe.notices import Notices
from paydesk.adapters.acquirers.stripe.objects import metadata_of

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
MARK = Mark("deployment", 1, "tag", live=True, kind=PurchaseKind.ORDER, order="A-1")
SESSION = {"object": "checkout.session", "client_reference_id": "key-1", "metadata": metadata_of("key-1", NOW, MARK)}
OURS = Notice("key-1", "tag")


def event(about: dict[str, Any] = SESSION) -> bytes:
    return json.dumps({"id": "evt_1", "type": "checkout.session.completed", "data": {"object": about}}).encode()


def signed(body: bytes, *secrets: str, at: datetime = NOW) -> dict[str, str]:
    return {"stripe-signature": signature(body, *secrets, at=at)}


def read(body: bytes, headers: dict[str, str], *secrets: str) -> Notice | None:
    return Notices(secrets or ("whsec_a",), lambda: NOW).read(headers, body)


class TestSignatures:
    def test_a_signed_event_names_our_key(self) -> None:
        assert read(event(), signed(event(), "whsec_a")) == OURS

    def test_while_a_secret_is_rolled_one_of_several_is_enough_on_either_side(self) -> None:
        assert read(event(), signed(event(), "whsec_old", "whsec_new"), "whsec_new") == OURS
        assert read(event(), signed(event(), "whsec_old"), "whsec_new", "whsec_old") == OURS

    @pytest.mark.parametrize("apart", [timedelta(minutes=5, seconds=1), timedelta(minutes=-5, seconds=-1)])
    def test_a_signature_of_another_time_is_refused(self, apart: timedelta) -> None:
        with pytest.raises(NoticeRefused, match="another time"):
            read(event(), signed(event(), "whsec_a", at=NOW - apart))

    @pytest.mark.parametrize("apart", [timedelta(minutes=4, seconds=59), timedelta(minutes=-4, seconds=-59)])
    def test_a_signature_of_the_last_five_minutes_is_taken(self, apart: timedelta) -> None:
        assert read(event(), signed(event(), "whsec_a", at=NOW - apart)) == OURS

    def test_another_body_or_secret_is_refused(self) -> None:
        for body, headers in (
            (event() + b" ", signed(event(), "whsec_a")),
            (event(), signed(event(), "whsec_b")),
            (event(), signed(event(), "")),
        ):
            with pytest.raises(NoticeRefused):
                read(body, headers)

    @pytest.mark.parametrize(
        "header",
        ["", "t=", "v1=abc", "t=1,t=2,v1=abc", "t=-1,v1=abc", "t=x,v1=", f"t={'9' * 13},v1=a", "t=1,v1=\xe9", ",=,"],
    )
    def test_a_header_of_another_form_is_refused(self, header: str) -> None:
        with pytest.raises(NoticeRefused):
            read(event(), {"stripe-signature": header})

    def test_the_older_scheme_counts_for_nothing(self) -> None:
        header = signed(event(), "whsec_a")["stripe-signature"].replace("v1=", "v0=")
        with pytest.raises(NoticeRefused):
            read(event(), {"stripe-signature": header})

    def test_without_a_secret_nothing_is_taken(self) -> None:
        with pytest.raises(NoticeRefused, match="PAYDESK_STRIPE_WEBHOOK_SECRET"):
            Notices((), lambda: NOW).read(signed(event(), ""), event())


class TestEvents:
    def test_a_payment_is_known_by_its_metadata(self) -> None:
        body = event({"object": "payment_intent", "metadata": metadata_of("key-2", NOW, MARK)})
        assert read(body, signed(body, "whsec_a")) == Notice("key-2", "tag")

    @pytest.mark.parametrize(
        "about",
        [
            {"object": "checkout.session"},
            {"object": "customer", "metadata": {}},
            {"object": "checkout.session", "client_reference_id": "theirs", "metadata": {"paydesk_key": "theirs"}},
        ],
    )
    def test_what_has_no_key_of_ours_is_about_nothing(self, about: dict[str, Any]) -> None:
        assert read(event(about), signed(event(about), "whsec_a")) is None

    @pytest.mark.parametrize(
        "body", [b"", b"[]", b'{"data": 1}', b"\xff\xfe", b'{"data": {"object": {"metadata": 1}}}']
    )
    def test_what_is_no_event_is_refused(self, body: bytes) -> None:
        with pytest.raises(NoticeRefused, match="read"):
            read(body, signed(body, "whsec_a"))
