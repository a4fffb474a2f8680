"""Files that share what is dear to start: one process of pytest-xdist plays them,
one after the other.
"""

from __future__ import annotations

ONE_PAYDESK = (
    *("tests/e2e/test_journey.py", "tests/e2e/test_shipping_journey.py"),
    *("tests/e2e/test_integrate_programs.py", "tests/e2e/test_violations.py"),
    *("tests/e2e/test_hosted_journey.py", "tests/e2e/test_trial_journey.py"),
    *("tests/e2e/test_console_pages.py", "tests/e2e/test_account_first_day.py", "tests/e2e/test_lists.py"),
)
"""Those that look at what is their own alone, in a Paydesk that has seen other customers."""


def scope_of(file: str) -> str:
    """What a file is handed out with: by itself, or with those that share a Paydesk."""
    return ONE_PAYDESK[0] if file in ONE_PAYDESK else file
