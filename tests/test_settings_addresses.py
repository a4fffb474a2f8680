from __future__ import annotations

import pytest

from paydesk.core.errors import SetupError
from paydesk.settings import load_settings


@pytest.mark.parametrize(
    ("address", "accepted"),
    [
        ("http://127.0.0.1:1", True),
        ("http://[::1]:1", True),
        ("https://stripe.internal", True),
        ("http://stripe.internal", False),
        ("http://10.1.2.3", False),
    ],
)
def test_cards_go_to_another_machine_over_tls_only(address: str, accepted: bool) -> None:
    if accepted:
        assert load_settings(stripe_api_base=address).stripe_api_base == address
        return
    with pytest.raises(SetupError, match=r"PAYDESK_STRIPE_API_BASE.*plain http"):
        load_settings(stripe_api_base=address)
