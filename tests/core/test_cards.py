from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from stdnum import luhn

from paydesk.core.cards import (
    BRAND_RULES,
    Brand,
    CardError,
    check_cvc,
    check_expiry,
    detect_brand,
    parse_expiry,
    parse_holder,
    parse_number,
    split_name,
)

NOW = datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC)


def code_of(raised: pytest.ExceptionInfo[CardError]) -> tuple[str, str]:
    return raised.value.field, raised.value.code


@pytest.mark.parametrize(
    ("number", "brand"),
    [
        ("4242424242424242", Brand.VISA),
        ("4222222222222", Brand.VISA),
        ("5555555555554444", Brand.MASTERCARD),
        ("2223003122003222", Brand.MASTERCARD),
        ("2720990000000007", Brand.MASTERCARD),
        ("378282246310005", Brand.AMEX),
        ("341111111111111", Brand.AMEX),
        ("6011111111111117", Brand.DISCOVER),
        ("6445644564456445", Brand.DISCOVER),
        ("6500000000000002", Brand.DISCOVER),
        ("30569309025904", Brand.DINERS),
        ("38520000023237", Brand.DINERS),
        ("36227206271667", Brand.DINERS),
        ("3566002020360505", Brand.JCB),
        ("3530111333300000", Brand.JCB),
        ("6200000000000005", Brand.UNIONPAY),
        ("6759649826438453", Brand.MAESTRO),
        ("5018000000000009", Brand.MAESTRO),
        ("6304000000000000", Brand.MAESTRO),
        ("9999999999999995", Brand.UNKNOWN),
    ],
)
def test_each_brand_is_known_by_its_first_digits_and_accepted(number: str, brand: Brand) -> None:
    assert detect_brand(number) is brand
    assert parse_number(number) == number


@pytest.mark.parametrize("number", ["2220990000000000", "2721000000000000", "3527000000000000", "306000", "66", ""])
def test_numbers_next_to_a_brands_range_do_not_belong_to_it(number: str) -> None:
    assert detect_brand(number) is Brand.UNKNOWN


@pytest.mark.parametrize("typed", ["4242 4242 4242 4242", "4242-4242-4242-4242", " 4242\u00a04242–42424242 "])
def test_spaces_and_dashes_in_a_number_do_not_matter(typed: str) -> None:
    assert parse_number(typed) == "4242424242424242"


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("", "missing"),
        (" - ", "missing"),
        ("4242 4242 4242 424x", "not_digits"),
        ("٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢", "not_digits"),
        ("²²²²²²²²²²²²", "not_digits"),
        ("42424242424", "length"),
        ("42424242424242424242", "length"),
        ("37828224631000", "length"),
        ("4242424242424241", "luhn"),
    ],
)
def test_a_wrong_number_is_named_by_a_stable_code(typed: str, code: str) -> None:
    with pytest.raises(CardError) as raised:
        parse_number(typed)
    assert code_of(raised) == ("number", code)


@given(st.text("0123456789", min_size=15, max_size=15).map(lambda start: start + luhn.calc_check_digit(start)))
def test_a_number_with_one_wrong_digit_is_always_refused(number: str) -> None:
    assume(16 in BRAND_RULES[detect_brand(number)].number_lengths)
    assert parse_number(number) == number
    mistyped = number[:-1] + str((int(number[-1]) + 1) % 10)
    with pytest.raises(CardError) as raised:
        parse_number(mistyped)
    assert raised.value.code == "luhn"


@given(st.text())
def test_any_text_as_a_number_is_refused_without_repeating_it_or_gives_digits(text: str) -> None:
    said = ""
    number = "0" * 12
    try:
        number = parse_number(text)
    except CardError as error:
        said = str(error)
    assert said in {"", *(f"card number: {code}" for code in ("missing", "not_digits", "length", "luhn"))}
    assert number.isascii()
    assert number.isdigit()
    assert 12 <= len(number) <= 19


@pytest.mark.parametrize("typed", ["12/30", "12 / 2030", "1230", "122030", " 12-30 ", "12.2030", "12 /30"])
def test_an_expiry_date_may_be_typed_in_many_ways(typed: str) -> None:
    assert parse_expiry(typed) == (12, 2030)


@given(st.integers(1, 12), st.integers(2000, 2099))
def test_every_month_and_year_is_read_back(month: int, year: int) -> None:
    assert parse_expiry(f"{month}/{year}") == (month, year)
    assert parse_expiry(f"{month:02}{year % 100:02}") == (month, year)


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("", "missing"),
        ("12", "format"),
        ("123", "format"),
        ("12/3", "format"),
        ("١٢/٣٠", "format"),
        ("13/30", "month"),
        ("00/30", "month"),
    ],
)
def test_a_wrong_expiry_date_is_named_by_a_stable_code(typed: str, code: str) -> None:
    with pytest.raises(CardError) as raised:
        parse_expiry(typed)
    assert code_of(raised) == ("expiry", code)


def test_a_card_is_good_through_the_last_day_of_its_month() -> None:
    check_expiry(2, 2026, NOW)
    with pytest.raises(CardError) as raised:
        check_expiry(2, 2026, datetime(2026, 3, 1, tzinfo=UTC))
    assert code_of(raised) == ("expiry", "expired")


def test_a_card_may_be_good_for_twenty_years_but_not_longer() -> None:
    check_expiry(12, 2046, NOW)
    with pytest.raises(CardError) as raised:
        check_expiry(1, 2047, NOW)
    assert code_of(raised) == ("expiry", "too_far")


def test_the_security_code_has_the_digits_that_its_brand_prints() -> None:
    assert check_cvc(" 123 ", Brand.VISA) == "123"
    assert check_cvc("1234", Brand.AMEX) == "1234"
    assert check_cvc("1234", Brand.UNKNOWN) == "1234"


@pytest.mark.parametrize(
    ("typed", "brand", "code"),
    [
        ("", Brand.VISA, "missing"),
        ("12a", Brand.VISA, "not_digits"),
        ("１２３", Brand.VISA, "not_digits"),
        ("1234", Brand.VISA, "length"),
        ("12", Brand.AMEX, "length"),
        ("12345", Brand.AMEX, "length"),
    ],
)
def test_a_wrong_security_code_is_named_by_a_stable_code(typed: str, brand: Brand, code: str) -> None:
    with pytest.raises(CardError) as raised:
        check_cvc(typed, brand)
    assert code_of(raised) == ("cvc", code)


def test_the_name_on_the_card_is_tidied() -> None:
    assert parse_holder("  Ada  King\tLovelace ") == "Ada King Lovelace"


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        (" ", "missing"),
        ("x" * 101, "too_long"),
        ("Ada\x00Lovelace", "characters"),
        ("4242 4242 4242 4242", "characters"),
        ("Ada 4242-4242-4242-4242", "characters"),
    ],
)
def test_a_name_that_can_not_be_one_is_refused(typed: str, code: str) -> None:
    with pytest.raises(CardError) as raised:
        parse_holder(typed)
    assert code_of(raised) == ("holder", code)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("Ada King Lovelace", ("Ada King", "Lovelace")),
        ("Ada Lovelace", ("Ada", "Lovelace")),
        ("Ada", ("Ada", "")),
        ("", ("", "")),
        ("  Ada   Lovelace  ", ("Ada", "Lovelace")),
    ],
)
def test_a_name_is_split_at_its_last_space(name: str, split: tuple[str, str]) -> None:
    assert split_name(name) == split


@given(st.text())
def test_splitting_a_name_loses_nothing_but_spare_spaces(name: str) -> None:
    assert " ".join(part for part in split_name(name) if part) == " ".join(name.split())
