from decimal import Decimal

import pytest

from paydesk_client import signature
from paydesk_client.signature import (
    MalformedForm,
    Signature,
    UnknownSignatureVersion,
    Value,
    Version,
    canonical_string,
    encode_form,
    find_ambiguity,
    parse_form,
    pingback_signature,
    sign,
    signature_version,
    verify,
)

KEY = "9c4d4efcfe74317c5df7d564cfe9565t"
GOLDEN = {
    "api_key": "95b682bafc8837b1e80e5fe940cb5731",
    "amount": "5.00",
    "currency": "EUR",
    "description": "Golden Ticket",
    "merchant_order_id": "5d00c568c5b2b",
}
VERSIONS: tuple[Version, ...] = ("v1", "v2")


@pytest.mark.parametrize(
    ("extra", "version", "expected"),
    [
        ({}, "v1", "82d34f95a4c7ea8c38c2d25ae5a126560f369be6944d3113fb55f682ae131314"),
        ({"sign_version": "v1"}, "v1", "87b3cebde91b94547e80364bad37d2dfd0cb44a0915373bdf500b6f0eddaf59d"),
        ({"sign_version": "v2"}, "v2", "e77ff5cb9a08d9dea4454ab14b462a43f3fd3f0af6258baa43d260e0c56d79d3"),
    ],
)
def test_the_golden_vectors_hold(extra: dict[str, str], version: Version, expected: str) -> None:
    assert sign({**GOLDEN, **extra}, KEY, version) == expected
    assert verify({**GOLDEN, **extra}, expected, KEY, version).variant == "canonical"
    assert Signature(KEY).sign({**GOLDEN, **extra}) == expected


def test_the_hash_itself_is_not_signed() -> None:
    assert sign({**GOLDEN, "hash": "anything"}, KEY) == sign(GOLDEN, KEY)


def test_v1_is_written_as_phps_http_build_query_does() -> None:
    parameters: dict[str, Value] = {
        "z": "a b~c/é",
        "address": {"zip": "1", "city": ""},
        "none": None,
        "yes": True,
        "no": False,
        "list": ["x", "y"],
        "amount": Decimal("5.00"),
        "nothing": [],
    }
    assert canonical_string(parameters, "v1") == (
        "address%5Bzip%5D=1&address%5Bcity%5D=&amount=5.00&list%5B0%5D=x&list%5B1%5D=y&no=0&yes=1&z=a+b%7Ec%2F%C3%A9"
    )


def test_v2_sorts_every_level_and_names_no_parent() -> None:
    parameters: dict[str, Value] = {
        "type": "physical",
        "shipping_address": {"country_code": "DE", "city": "Köln", "on": True, "off": False},
        "reason": None,
        "attachments": [str(number) for number in range(11)],
    }
    assert canonical_string(parameters, "v2") == (
        "0=0;1=1;2=2;3=3;4=4;5=5;6=6;7=7;8=8;9=9;10=10;reason=;city=Köln;country_code=DE;off=;on=1;type=physical;"
    )


def test_a_posted_form_and_the_json_it_came_from_sign_alike_in_v2() -> None:
    body: dict[str, Value] = {
        "public_key": "p", "sign_version": "v2", "refundable": True,
        "shipping_address": {"zip": "1", "city": "x"}, "attachments": ["x", "y"],
    }  # fmt: skip
    assert sign(parse_form(encode_form(body).encode()), KEY, "v2") == sign(body, KEY, "v2")


def test_an_added_or_removed_field_fails() -> None:
    assert not verify({**GOLDEN, "email": "a@example.com"}, sign(GOLDEN, KEY), KEY, "v1")
    assert not verify({name: GOLDEN[name] for name in ("amount", "api_key")}, sign(GOLDEN, KEY), KEY, "v1")


def test_an_empty_nested_field_left_out_verifies() -> None:
    order = {**GOLDEN, "sign_version": "v2"}
    posted: dict[str, Value] = {**order, "shipping_address": {"city": "", "zip": "1"}}
    assert verify(posted, sign({**order, "shipping_address": {"zip": "1"}}, KEY, "v2"), KEY, "v2")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_number_of_strings_hashed_is_bounded(version: Version, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []

    def digest(string: str, private_key: str, version: Version) -> str:
        hashed.append(string)
        return ""

    monkeypatch.setattr(signature, "_digest", digest)
    posted = {f"Empty{number}": "" for number in range(150)} | {f"name{number}": "~ *()'" for number in range(50)}
    assert not verify(posted, "f" * 64, KEY, version)
    assert len(hashed) <= signature.MOST_CANDIDATES
    few = {name: posted[name] for name in [*list(posted)[:5], "name1", "name2"]}
    assert not verify(few, "f" * 64, KEY, version)
    assert 32 < len(hashed) <= 2 * signature.MOST_CANDIDATES


@pytest.mark.parametrize("odd", ["", "f", "Ä" * 64, "\ud800", "0" * 1000, None, ["x"], {"a": "b"}, 5])
def test_what_is_no_hash_is_not_valid_and_does_not_raise(odd: Value) -> None:
    assert not verify(GOLDEN, odd, KEY, "v1")


def test_an_upper_case_hash_verifies() -> None:
    assert verify(GOLDEN, sign(GOLDEN, KEY).upper(), KEY, "v1")


def test_a_lone_surrogate_from_json_does_not_raise() -> None:
    for version in VERSIONS:
        assert verify({"a": "\ud800"}, sign({"a": "\ud800"}, KEY, version), KEY, version)


@pytest.mark.parametrize(
    ("sign_version", "version"), [(None, "v1"), ("", "v1"), ("v1", "v1"), ("v2", "v2"), ("v3", None), (["v2"], None)]
)
def test_sign_version_chooses_the_version(sign_version: Value, version: Version | None) -> None:
    if version is None:
        with pytest.raises(UnknownSignatureVersion, match="expected v1 or v2"):
            signature_version({"sign_version": sign_version})
    else:
        assert signature_version({"sign_version": sign_version}) == version


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(UnknownSignatureVersion, match='"v3" is unknown'):
        sign(GOLDEN, KEY, "v3")  # type: ignore[arg-type]


def test_a_float_is_refused_with_what_to_give_instead() -> None:
    for odd in (5.0, b"5"):
        with pytest.raises(TypeError, match=r'"amount" holds a .*; give text'):
            sign({"amount": odd}, KEY)  # type: ignore[dict-item]


def test_nesting_too_deep_is_refused_before_recursion_is() -> None:
    deep: Value = "x"
    for _ in range(100_000):
        deep = [deep]
    for version in VERSIONS:
        with pytest.raises(MalformedForm, match="nested deeper than 5"):
            verify({"a": deep}, "", KEY, version)


def test_a_huge_exponent_is_not_written_out() -> None:
    assert canonical_string({"a": Decimal("1E+999999")}, "v1") == "a=1E%2B999999"
    assert canonical_string({"a": Decimal("1E+3")}, "v2") == "a=1000;"


@pytest.mark.parametrize(
    "body",
    [
        b"a[amount]=100&amount=1",
        b"description=x;amount=100&amount=1",
        b"amount=100;api_key=1",
        b"0=1",
        b"attachments[x]=1",
        b"shipping_address[phone]=1",
        b"shipping_address[street]=x;phone=1",
        b"description=x;email=1",
        b"description=x;0=1",
        b"description=x;e=1",
        b"a[b][currency]=USD",
    ],
)
def test_a_v2_request_that_reads_two_ways_is_found(body: bytes) -> None:
    assert "sign with v1" in (find_ambiguity(parse_form(body)) or "")


def test_an_ordinary_request_is_not_ambiguous() -> None:
    assert (
        find_ambiguity(
            {
                **GOLDEN,
                "sign_version": "v2",
                "description": "a; b=c;d=e;zone=1",
                "success_url": "https://shop.example/a;jsessionid=1?x=1",
                "shipping_address": {"country_code": "DE", "city": "Köln"},
            }
        )
        is None
    )


def test_the_key_stays_out_of_the_repr() -> None:
    assert KEY not in repr(Signature(KEY))


def test_a_pingback_signature_is_the_hmac_of_the_raw_body() -> None:
    assert pingback_signature(b"", "key") == "5d5d139563c95b5967b9bd9a8c9b233a9dedb45072794cd232dc1b74832607d0"
