import pytest
from hypothesis import given
from hypothesis import strategies as st

from paydesk_client.parameters import MOST_FIELDS, MalformedForm, Value, encode_form, parse_form


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (b"", {}),
        (b"a=1&b=2", {"a": "1", "b": "2"}),
        (b"b=&a&", {"b": "", "a": ""}),
        (b"a=x+y%2Bz%3D&b=1=2", {"a": "x y+z=", "b": "1=2"}),
        ("a=K%C3%B6ln&b=Köln".encode(), {"a": "Köln", "b": "Köln"}),
        (b"a=100%&b=%zz", {"a": "100%", "b": "%zz"}),
        (b"a[b]=1&a[c][d]=2&e=3&a[f]=4", {"a": {"b": "1", "c": {"d": "2"}, "f": "4"}, "e": "3"}),
        (b"a%5Bb%5D=1", {"a": {"b": "1"}}),
        (b"a[]=x&a[]=y", {"a": ["x", "y"]}),
        (b"a[0]=x&a[1]=y", {"a": ["x", "y"]}),
        (b"a[1]=x&a[0]=y", {"a": {"1": "x", "0": "y"}}),
        (b"a[][b]=1&a[][b]=2", {"a": [{"b": "1"}, {"b": "2"}]}),
        (b"0=x&1=y", {"0": "x", "1": "y"}),
    ],
)
def test_a_form_is_read_as_php_reads_it(body: bytes, form: dict[str, Value]) -> None:
    assert parse_form(body) == form


def test_the_order_of_fields_is_kept() -> None:
    assert list(parse_form(b"z=1&a=2&m=3")) == ["z", "a", "m"]


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        (b"a=%FF", "a", '"a" is not valid UTF-8'),
        (b"%FF=a", "%FF", '"%FF" is not valid UTF-8'),
        (b"\xff=a", "\\xff", "is not valid UTF-8"),
        (b"a=%ED%A0%80", "a", "is not valid UTF-8"),
        (b"amount=1&amount=2", "amount", '"amount" is given twice'),
        (b"a[b]=1&a[b]=2", "a[b]", '"a\\[b\\]" is given twice'),
        (b"a=1&a[b]=2", "a[b]", "both as a value and as a list"),
        (b"a[b]=2&a=1", "a", "is given twice"),
        (b"a[]=2&a[b]=1&a[]=3", "a[]", "mixes \\[\\] with named items"),
        (b"a[]=2&a[0]=1", "a[0]", "is given twice"),
        (b"=1", "", "malformed"),
        (b"[a]=1", "[a]", "malformed"),
        (b"a[b=1", "a[b", "malformed"),
        (b"a]=1", "a]", "malformed"),
        (b"a[b]c=1", "a[b]c", "malformed"),
        (b"a[[b]]=1", "a[[b]]", "malformed"),
        (b"a%00b=1", "a\x00b", 'field name "a\\?b" is malformed'),
        (b"a[1][2][3][4][5][6]=x", "a", '"a" is nested deeper than 5 levels'),
    ],
)
def test_a_form_that_could_be_read_in_two_ways_is_refused(body: bytes, field: str, message: str) -> None:
    with pytest.raises(MalformedForm, match=message) as refusal:
        parse_form(body)
    assert refusal.value.field == field


def test_five_levels_and_two_hundred_fields_are_accepted() -> None:
    assert parse_form(b"a[1][2][3][4][5]=x")
    assert len(parse_form("&".join(f"a{number}=" for number in range(MOST_FIELDS)).encode())) == MOST_FIELDS


def test_more_fields_are_refused() -> None:
    with pytest.raises(MalformedForm, match="201 fields, at most 200"):
        parse_form("&".join(f"a{number}=" for number in range(MOST_FIELDS + 1)).encode())


def test_a_long_name_is_shortened_in_the_message() -> None:
    with pytest.raises(MalformedForm) as refusal:
        parse_form(b"a" * 5000 + b"]=1")
    assert len(str(refusal.value)) < 200


def test_booleans_become_1_and_0_and_nulls_are_left_out() -> None:
    assert encode_form({"a": {"b": True, "c": False, "d": None}, "e": [1]}) == "a%5Bb%5D=1&a%5Bc%5D=0&e%5B0%5D=1"


@given(st.binary(max_size=60) | st.text("ab=&[]%0", max_size=30).map(str.encode))
def test_any_bytes_are_read_or_refused_and_never_break(body: bytes) -> None:
    try:
        form = parse_form(body)
    except MalformedForm:
        return
    assert parse_form(encode_form(form).encode()) == form
