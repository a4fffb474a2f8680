"""Options that several commands have, each said once."""

from __future__ import annotations

from typing import Annotated

import typer

MerchantId = Annotated[int, typer.Argument(metavar="ID", min=1, help="The merchant's id.")]
HowMany = Annotated[int, typer.Option(min=1, max=10000, help="How many at most.")]
Live = Annotated[bool, typer.Option("--live/--test", help="Which side; test if left out.")]
EitherSide = Annotated[bool | None, typer.Option("--live/--test", help="Only one side; both if left out.")]
SubscriptionId = Annotated[int, typer.Argument(metavar="ID", min=1, max=2**53 - 1, help="The subscription's id.")]
Preview = Annotated[bool, typer.Option("--preview", help="Show what would come of it, and change nothing.")]
SavesCards = Annotated[
    bool | None,
    typer.Option("--saves-cards/--no-saves-cards", help="Whether customers may save a card, if they agree."),
]
SignedQuantities = Annotated[
    bool | None, typer.Option("--signed-quantities/--no-signed-quantities", help="Whether recurring_quantity is read.")
]
SignedLineItems = Annotated[
    bool | None, typer.Option("--signed-line-items/--no-signed-line-items", help="Whether forms may bring line_items.")
]
SignedCoupons = Annotated[
    bool | None, typer.Option("--signed-coupons/--no-signed-coupons", help="Whether recurring_coupon is read.")
]
TrialsWithoutCard = Annotated[
    bool | None,
    typer.Option(
        "--trials-without-card/--trials-with-card",
        help="Whether a free trial begins without a card, and ends unless its customer gives one.",
    ),
]
TypedCoupons = Annotated[
    bool | None, typer.Option("--typed-coupons/--no-typed-coupons", help="Whether customers may type coupons.")
]


def side_word(live: bool | None) -> str | None:
    """Which side something is on, None if it is on none."""
    return None if live is None else "live" if live else "test"
