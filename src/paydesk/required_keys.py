"""The keys that a process doesn't begin to work without."""

from __future__ import annotations

import re

from paydesk.core.errors import SetupError
from paydesk.settings import PREFIX, Settings

SHORTEST_SECRET = 32
"""The fewest characters of a secret that keys derive from."""


def require_keys(settings: Settings) -> None:
    """Make sure that the keys are set; without them nothing that is encrypted can be read.

    Raises: SetupError, naming what is missing.
    """
    missing = [
        PREFIX + name.upper()
        for name in ("secret_key", "vault_keys")
        if not getattr(settings, name).get_secret_value().strip()
    ]
    if missing:
        raise SetupError(f"{' and '.join(missing)} not set; see docs/operate.md, or let `paydesk run` make them once")


def require_live_key(settings: Settings) -> None:
    """Make sure that the live acquirer, if there is one, has a key that may be one,
    and our own secret for its keys.

    Raises: SetupError, saying where to find it or how to make it.
    """
    key = settings.stripe_secret_key.get_secret_value()
    if settings.live_acquirer == "stripe" and not key.startswith(("sk_", "rk_")):
        raise SetupError(
            f"{PREFIX}LIVE_ACQUIRER=stripe needs {PREFIX}STRIPE_SECRET_KEY: the account's secret key, starting with "
            "sk_ (Stripe dashboard, Developers, API keys)"
        )
    if settings.live_acquirer == "mollie" and not settings.mollie_key.get_secret_value().startswith(("live_", "test_")):
        raise SetupError(
            f"{PREFIX}LIVE_ACQUIRER=mollie needs {PREFIX}MOLLIE_KEY: the API key of the account, starting with live_ "
            "(Mollie dashboard, Developers, API keys)"
        )
    domain = settings.stripe_checkout_domain
    if domain and not re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", domain):
        raise SetupError(f"{PREFIX}STRIPE_CHECKOUT_DOMAIN must be a domain like pay.shop.example, or empty")
    secret = settings.idempotency_secret.get_secret_value().strip()
    if settings.live_acquirer and len(secret) < SHORTEST_SECRET:
        raise SetupError(
            f"{PREFIX}LIVE_ACQUIRER={settings.live_acquirer} needs {PREFIX}IDEMPOTENCY_SECRET, at least "
            f"{SHORTEST_SECRET} random characters: make it once (`openssl rand -base64 32`), keep it outside the "
            "database, back it up and never change it, or what was charged may be charged again"
        )
