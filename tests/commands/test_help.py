from __future__ import annotations

import typer.main
from typer.core import TyperGroup

from paydesk.commands import alarms, customers, fees, mail, merchants, operators, pingbacks, vault


def test_every_command_says_what_it_is_for_and_gives_an_example() -> None:
    for app in (alarms.app, customers.app, fees.app, mail.app, merchants.app, operators.app, pingbacks.app, vault.app):
        group = typer.main.get_command(app)
        assert isinstance(group, TyperGroup)
        for name, command in group.commands.items():
            assert command.help, name
            assert (command.help or "").rstrip().endswith("."), name
            assert (command.epilog or "").startswith("Example"), name
            for parameter in command.params:
                assert getattr(parameter, "help", "x"), (name, parameter.name)
