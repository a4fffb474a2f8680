"""The chart of what was sold in a period, above the period before."""

from __future__ import annotations

from paydesk.domain.ledger.figures import CurrencySales, Days
from paydesk.web.console.day_names import named, tick
from paydesk.web.console.plots import Line, Plot
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark


def volume_plot(visit: Visit, period: Days, sold: CurrencySales) -> Plot:
    """The volume of each day, or month, above that of the period before."""
    name = mark("Volume per month, %(currency)s") if period.by_month else mark("Volume per day, %(currency)s")
    lines = []
    for label, tone, shape, days in (
        (mark("This period"), "now", "area", sold.by_day),
        (mark("The period before"), "before", "line", sold.by_day_before),
    ):
        volumes = [one.volume for one in days]
        said = [visit.money(volume, sold.currency) for volume in volumes]
        lines.append(Line(visit.texts.get(label), tone, shape, volumes, said))
    return Plot(
        visit.texts.get(name) % {"currency": sold.currency},
        [named(visit, day, by_month=period.by_month) for day in period.days],
        [tick(visit, day, by_month=period.by_month) for day in period.days],
        lines,
    )
