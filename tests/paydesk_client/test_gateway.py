import pytest

from paydesk_client import Gateway


def test_the_private_key_stays_out_of_every_repr() -> None:
    gateway = Gateway("public", "private-key")
    for shown in (gateway, gateway.payment_form(), gateway.signature(), gateway.pingback()):
        assert "private-key" not in f"{shown!r} {shown}"
    assert "public" in repr(gateway)


def test_test_mode_uses_the_sandbox_below_the_base() -> None:
    assert Gateway("p", "k", "https://pay.example.com/", True).api_url == "https://pay.example.com/sandbox"
    assert Gateway("p", "k", "https://pay.example.com").api_url == "https://pay.example.com"
    assert Gateway("p", "k").api_url == "http://127.0.0.1:8000"


def test_the_signature_follows_sign_version() -> None:
    signer = Gateway("p", "k").signature()
    for parameters in ({"a": "1"}, {"a": "1", "sign_version": "v2"}):
        assert signer.verify(parameters, signer.sign(parameters))
        assert not signer.verify({**parameters, "a": "2"}, signer.sign(parameters))


@pytest.mark.parametrize(("public", "private"), [("", "k"), ("p", "")])
def test_missing_keys_are_refused(public: str, private: str) -> None:
    with pytest.raises(ValueError, match="public_key and private_key are required"):
        Gateway(public, private)


@pytest.mark.parametrize("address", ["", "pay.example.com", "javascript:alert(1)", "https://"])
def test_a_base_that_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="expected one like https://pay"):
        Gateway("p", "k", address)


def test_the_sandbox_is_not_looked_for_below_the_sandbox() -> None:
    for base in ("https://pay.example.com/sandbox", "https://pay.example.com/sandbox/"):
        with pytest.raises(ValueError, match="leave one of them out"):
            Gateway("p", "k", base, is_test=True)
        assert Gateway("p", "k", base).api_url == "https://pay.example.com/sandbox"
