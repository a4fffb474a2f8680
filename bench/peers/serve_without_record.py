"""`paydesk serve` whose simulated bank approves at once and writes nothing down:
a real bank's computer and disk are not ours.

It takes the place of the simulated bank under its name, so that all else is as it always is.
"""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

from paydesk import app
from paydesk.adapters.acquirers.hosted_pages import PageList
from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage
from paydesk.cli import main
from paydesk.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[1]))

from approving import Approving


class _Approving(Approving):
    name = "simulator"

    async def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        return PurchasePage((), "")

    async def list_refunds(self, since: datetime, after: str) -> RefundPage:
        return RefundPage((), "")

    async def list_pages(self, since: datetime, after: str) -> PageList:
        return PageList((), "")


def _test_acquirer(settings: Settings) -> Acquirer:
    return _Approving(settings.simulator_latency)


if __name__ == "__main__":
    app.__dict__["test_acquirer"] = _test_acquirer
    main()
