import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paydesk.adapters.vault import Sealed, Vault, VaultError, generate_key_setting, generate_secret
from paydesk.core.errors import SetupError

OLD, NEW = b"o" * 32, b"n" * 32
SECRET = b"s" * 32


@pytest.fixture
def vault() -> Vault:
    return Vault({"old": OLD}, SECRET)


def seal(vault: Vault, plaintext: bytes = b"4242424242424242") -> Sealed:
    return vault.seal(plaintext, purpose="card", merchant_id=7, row_id=11)


@given(st.binary(max_size=200), st.text(max_size=20), st.integers(0, 2**53), st.integers(0, 2**53))
def test_what_was_sealed_opens_again(plaintext: bytes, purpose: str, merchant_id: int, row_id: int) -> None:
    vault = Vault({"old": OLD}, SECRET)
    sealed = vault.seal(plaintext, purpose=purpose, merchant_id=merchant_id, row_id=row_id)
    assert vault.open(sealed, purpose=purpose, merchant_id=merchant_id, row_id=row_id) == plaintext


def test_the_value_is_not_readable_in_the_blob_and_no_two_blobs_are_alike(vault: Vault) -> None:
    blobs = {seal(vault).blob for _ in range(100)}
    assert len(blobs) == 100
    assert not any(b"4242" in blob for blob in blobs)


def test_a_change_of_any_bit_is_noticed(vault: Vault) -> None:
    sealed = seal(vault)
    for place in range(len(sealed.blob)):
        for bit in range(8):
            changed = bytearray(sealed.blob)
            changed[place] ^= 1 << bit
            with pytest.raises(VaultError):
                vault.open(Sealed(sealed.key_id, bytes(changed)), purpose="card", merchant_id=7, row_id=11)


def test_a_shortened_blob_is_noticed(vault: Vault) -> None:
    sealed = seal(vault)
    for length in range(len(sealed.blob)):
        with pytest.raises(VaultError):
            vault.open(Sealed(sealed.key_id, sealed.blob[:length]), purpose="card", merchant_id=7, row_id=11)


@pytest.mark.parametrize(
    ("purpose", "merchant_id", "row_id"),
    [("key", 7, 11), ("card", 8, 11), ("card", 7, 12), ("card", 11, 7), ("", 7, 11)],
)
def test_a_blob_moved_elsewhere_does_not_open(vault: Vault, purpose: str, merchant_id: int, row_id: int) -> None:
    with pytest.raises(VaultError, match="belongs to another row") as raised:
        vault.open(seal(vault), purpose=purpose, merchant_id=merchant_id, row_id=row_id)
    assert "4242" not in str(raised.value)


def test_after_a_rotation_old_values_open_and_new_ones_use_the_new_key(vault: Vault) -> None:
    rotated = Vault({"new": NEW, "old": OLD}, SECRET)
    assert rotated.current_key_id == "new"
    assert rotated.open(seal(vault), purpose="card", merchant_id=7, row_id=11) == b"4242424242424242"
    assert seal(rotated).key_id == "new"


def test_a_value_under_a_removed_key_says_which_key_is_missing(vault: Vault) -> None:
    with pytest.raises(VaultError, match='vault key "old" is not configured'):
        Vault({"new": NEW}, SECRET).open(seal(vault), purpose="card", merchant_id=7, row_id=11)


def test_a_value_does_not_open_under_another_keys_id() -> None:
    twins = Vault({"a": OLD, "b": OLD}, SECRET)
    sealed = seal(twins)
    with pytest.raises(VaultError):
        twins.open(Sealed("b", sealed.blob), purpose="card", merchant_id=7, row_id=11)


def test_fingerprints_are_equal_only_for_the_same_value_purpose_and_secret(vault: Vault) -> None:
    mark = vault.fingerprint("4242424242424242", purpose="card")
    assert len(mark) == 32
    assert mark == Vault({"new": NEW}, SECRET).fingerprint("4242424242424242", purpose="card")
    assert mark != vault.fingerprint("4242424242424241", purpose="card")
    assert mark != vault.fingerprint("4242424242424242", purpose="private key")
    assert mark != Vault({"old": OLD}, b"t" * 32).fingerprint("4242424242424242", purpose="card")


def test_no_key_shows_when_a_vault_is_printed() -> None:
    setting = generate_key_setting()
    secret = generate_secret()
    shown = repr(Vault.from_settings(setting, secret)) + str(seal(Vault.from_settings(setting, secret)))
    key_id, _, encoded = setting.partition(":")
    assert key_id in shown
    assert encoded not in shown
    assert secret not in shown
    assert repr(base64.b64decode(encoded))[2:-1] not in shown


def test_made_settings_work_and_never_repeat() -> None:
    assert generate_key_setting() != generate_key_setting()
    assert generate_secret() != generate_secret()
    both = Vault.from_settings(f" {generate_key_setting()} , {generate_key_setting()},", generate_secret())
    assert both.open(seal(both), purpose="card", merchant_id=7, row_id=11) == b"4242424242424242"


def test_keys_may_be_standard_or_url_safe_base64_with_or_without_padding() -> None:
    key = b"\xfb\xff" * 16
    padded = Vault.from_settings(f"k:{base64.b64encode(key).decode()}", "s" * 32)
    bare = Vault.from_settings(f"k:{base64.urlsafe_b64encode(key).decode().rstrip('=')}", "s" * 32)
    assert bare.open(seal(padded), purpose="card", merchant_id=7, row_id=11) == b"4242424242424242"


KEY = base64.b64encode(OLD).decode()


@pytest.mark.parametrize(
    ("keys", "secret", "message"),
    [
        ("", "s" * 32, "holds no key"),
        (KEY, "s" * 32, "entry 1 .* not of the form id:base64key"),
        (f"a:{KEY},{KEY}", "s" * 32, "entry 2 .* not of the form id:base64key"),
        (f"a:{KEY},a:{KEY}", "s" * 32, 'key id "a" twice'),
        (f"a b:{KEY}", "s" * 32, "a key id .* is not"),
        ("a:not base64!", "s" * 32, "entry 1 .* is not base64"),
        ("a:c2hvcnQ=", "s" * 32, 'vault key "a" has 5 bytes'),
        (f"a:{KEY}", "short", "PAYDESK_SECRET_KEY has 5 bytes"),
    ],
)
def test_wrong_settings_are_named_without_showing_a_key(keys: str, secret: str, message: str) -> None:
    with pytest.raises(SetupError, match=message) as raised:
        Vault.from_settings(keys, secret)
    assert KEY not in str(raised.value)
    assert raised.value.__context__ is None or KEY not in repr(raised.value.__context__)
