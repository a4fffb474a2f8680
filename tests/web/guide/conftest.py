"""Readers of the guide: people of the account's door, and strangers."""

from __future__ import annotations

from tests.web.account.conftest import gate, owner, quick_hashes, sign_up, stranger

__all__ = ["gate", "owner", "quick_hashes", "sign_up", "stranger"]
