"""Every command says what it is for, and how it is called."""

from __future__ import annotations

import typer.main
from typer.core import TyperGroup

from paydesk.commands import (
    acquirers,
    alarms,
    card_guard,
    coupons,
    customers,
    fees,
    mail,
    merchants,
    operators,
    packages,
    pingbacks,
    vault,
)

APPS = (
    acquirers.app, alarms.app, card_guard.app, coupons.app, customers.app, fees.app, mail.app, merchants.app,
    operators.app, packages.app, pingbacks.app, vault.app,
)  # fmt: skip


def test_every_command_says_what_it_is_for_and_gives_an_example() -> None:
    for app in APPS:
        group = typer.main.get_command(app)
        assert isinstance(group, TyperGroup)
        for name, command in group.commands.items():
            assert command.help, name
            assert (command.help or "").rstrip().endswith("."), name
            if isinstance(command, TyperGroup):
                continue
            assert (command.epilog or "").startswith("Example"), name
            for parameter in command.params:
                assert getattr(parameter, "help", "x"), (name, parameter.name)
