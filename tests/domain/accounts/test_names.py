"""Names stand in mails that we send to others, so they hold nothing that a mail program makes
a link of.
"""

from __future__ import annotations

import pytest

from paydesk.core.errors import Malformed
from paydesk.domain.accounts.people import parse_name, unlinked


@pytest.mark.parametrize(
    "name",
    [
        "Locked: go to https://evil.example/x",
        "evil.example",
        "PayPal www.evil",
        "ftp://x",
        "Ada ada@evil.example",
        "evil．example",
        "//evil",
        "Ask böse.example now",
    ],
)
def test_a_name_holds_no_link_domain_or_address(name: str) -> None:
    with pytest.raises(Malformed, match="can't hold a link, a domain or an e-mail address"):
        parse_name(name)
    assert parse_name(unlinked(name)), "one of before is taken apart for mails"


@pytest.mark.parametrize(
    "name", ["J.R. Smith", "St. Gallen Tea", "Ada King-Lovelace", "Tea & Co.", "O'Neill", "3.5 mm", "Ü. Ö.", "A/B Shop"]
)
def test_a_name_may_have_dots_and_signs(name: str) -> None:
    assert parse_name(name) == unlinked(name) == name
