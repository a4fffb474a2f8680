from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from paydesk.core.errors import SetupError
from paydesk.required_keys import require_live_key
from paydesk.settings import load_settings


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({"live_acquirer": "mollie"}, "PAYDESK_MOLLIE_KEY"),
        ({"live_acquirer": "mollie", "mollie_key": SecretStr("sk_live_x")}, "PAYDESK_MOLLIE_KEY"),
        ({"live_acquirer": "mollie", "mollie_key": SecretStr("live_x")}, "PAYDESK_IDEMPOTENCY_SECRET"),
        ({"live_acquirer": "stripe", "mollie_key": SecretStr("live_x")}, "PAYDESK_STRIPE_SECRET_KEY"),
    ],
)
def test_a_live_acquirer_needs_its_own_key_and_ours(settings: dict[str, Any], missing: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=f"needs {missing}"):
        require_live_key(load_settings(**settings, data_dir=tmp_path))


@pytest.mark.parametrize("key", ["live_x", "test_x"])
def test_mollies_keys_are_taken_for_both_of_its_sides(key: str) -> None:
    require_live_key(
        load_settings(live_acquirer="mollie", mollie_key=SecretStr(key), idempotency_secret=SecretStr("i" * 40))
    )
