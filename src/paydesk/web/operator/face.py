"""What surrounds the console's pages: their templates and the sidebar."""

from __future__ import annotations

from pathlib import Path

from paydesk.web.console.shell import Entry, Face, catalogues_of, pages_of
from paydesk.web.texts import mark

_HERE = Path(__file__).parent

SEARCH = "/operator/search"

FACE = Face(
    pages_of(_HERE / "templates"),
    catalogues_of(_HERE),
    sidebar=(
        Entry("/operator/overview", mark("Overview"), "layout-dashboard"),
        Entry("/operator/alarms", mark("Alarms"), "alert-triangle"),
        Entry("/operator/merchants", mark("Merchants"), "building-store"),
        Entry("/operator/profiles", mark("Profiles"), "shield-check"),
        Entry("/operator/plans", mark("Fee plans"), "receipt-refund"),
        Entry("/operator/payouts", mark("Payouts"), "cash"),
        Entry("/operator/chargebacks", mark("Chargebacks"), "scale"),
        Entry("/operator/outcomes", mark("Unknown outcomes"), "help"),
        Entry("/operator/acquirers", mark("Acquirers"), "building-bank"),
        Entry("/operator/proceeds", mark("Fees and payouts"), "wallet"),
        Entry("/operator/queues", mark("Queues"), "activity"),
        Entry("/operator/cells", mark("Cells"), "server", of_cells=True),
        Entry("/operator/audit", mark("Audit log"), "history"),
    ),
    search=SEARCH,
)
