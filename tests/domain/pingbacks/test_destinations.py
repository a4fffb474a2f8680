from datetime import UTC, datetime

import pytest

from paydesk.domain.pingbacks.destinations import Account, destination

LIVE_SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_forms_url_comes_before_the_accounts() -> None:
    account = Account("https://account", None, None)
    assert destination("https://form", account, live=True) == "https://form"
    assert destination("https://form", account, live=False) == "https://form"
    assert destination(None, account, live=True) == "https://account"
    assert destination(None, account, live=False) == "https://account"


def test_an_accounts_test_url_is_for_test_pingbacks_alone() -> None:
    account = Account("https://account", "https://test", None)
    assert destination(None, account, live=False) == "https://test"
    assert destination(None, account, live=True) == "https://account"


@pytest.mark.parametrize("form_url", ["https://form", None])
def test_once_live_test_pingbacks_go_to_the_accounts_test_url_only(form_url: str | None) -> None:
    assert destination(form_url, Account("https://account", "https://test", LIVE_SINCE), live=False) == "https://test"
    assert destination(form_url, Account("https://account", None, LIVE_SINCE), live=False) is None


def test_without_any_url_a_pingback_waits() -> None:
    assert destination(None, Account(None, None, None), live=False) is None
    assert destination("", Account("", "", None), live=True) is None
