from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

from msgspec.structs import replace

from paydesk.core.money import FeePlan, Split, split_payment
from paydesk.domain.pingbacks.payload import PaymentReport, payment_envelope

REPORT = PaymentReport(
    payment_id=4711,
    merchant_order_id="5d00c568c5b2b",
    currency="EUR",
    split=split_payment(Decimal("0.01"), FeePlan(fixed=Decimal("0.27"))),
    at=datetime(2019, 7, 11, 9, 44, 16, tzinfo=UTC),
    first_name="Zoë",
    last_name='O"Neil',
    username="zoe@shop.example",
    country="DE",
    email="zoe@shop.example",
)


def test_the_envelope_has_the_specs_fields_in_the_specs_order() -> None:
    assert payment_envelope(REPORT) == (
        '{"event":"payment","payment_order":{"id":4711,"merchant_order_id":"5d00c568c5b2b","payment_system":1,'
        '"status":"successful","paid_amount":0.01,"paid_currency":"EUR","merchant_net_revenue":-0.2608,'
        '"merchant_rolling_reserve":0.0005,"fees":0.2703,"date":{"date":"2019-07-11 09:44:16.000000",'
        '"timezone_type":3,"timezone":"UTC"}},"user":{"firstname":"Zoë","lastname":"O\\"Neil",'
        '"username":"zoe@shop.example","country":"DE","email":"zoe@shop.example"},"with_risk_check":false}'
    )


def test_amounts_are_plain_numbers_without_noise_or_trailing_zeros() -> None:
    split = Split(Decimal("1E+3"), Decimal("999999999999.9999"), Decimal("-0.0000"), Decimal("0.5000"))
    text = payment_envelope(replace(REPORT, split=split))
    for part in (
        '"paid_amount":1000,',
        '"merchant_net_revenue":999999999999.9999,',
        '"merchant_rolling_reserve":0,',
        '"fees":0.5,',
    ):
        assert part in text


def test_the_date_is_in_utc_with_microseconds() -> None:
    at = datetime(2026, 1, 1, 1, 30, 0, 123, tzinfo=timezone(timedelta(hours=2)))
    assert '"date":"2025-12-31 23:30:00.000123"' in payment_envelope(replace(REPORT, at=at))
