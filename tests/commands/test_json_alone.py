"""With `--json` nothing but JSON stands on stdout, whatever is logged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
import typer
from tests import breaking, set_back
from tests.lengths import at_length, longer

from paydesk import cli, settings
from paydesk.adapters.vault import generate_key_setting, generate_secret
from paydesk.commands import connecting, verifying
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database

LINE = "a line of the log"

WORDS: dict[str, str] = {
    "check": "--merchant {merchant}",
    "balance": "{merchant}",
    "refund": "{payment} --amount 1.00",
    "reconcile": "",
    "undo": "nowhere --acquirer simulator --yes",
    "restored": "--gap 10",
    "hold show": "",
    "hold accept": "seen",
    "merchant create": "--name Other --email other@shop.example",
    "merchant list": "",
    "merchant show": "{merchant}",
    "merchant set": "{merchant} --shipped-goods",
    "merchant go-live": "{merchant}",
    "merchant suspend": "{merchant} --reason looked-at",
    "merchant resume": "{merchant}",
    "merchant invite": "{merchant} --email somebody@shop.example",
    "merchant move": "{merchant} --to 2 --to-env {other_cell}",
    "cell add": "2 --address http://127.0.0.1:1 --inside http://127.0.0.1:1",
    "cell list": "",
    "cell check": "",
    "cell maps": ".",
    "merchant guard show": "{merchant}",
    "merchant guard set": "{merchant} --always-authenticate",
    "merchant guard lift": "{merchant}",
    "merchant rejected-forms": "{merchant}",
    "merchant ignored-fields": "{merchant}",
    "acquirer add": "second --kind simulator --address http://127.0.0.1:1",
    "acquirer list": "",
    "acquirer show": "simulator",
    "acquirer disable": "nowhere",
    "acquirer enable": "nowhere",
    "acquirer currencies": "nowhere EUR",
    "acquirer key": "nowhere",
    "acquirer waiting": "",
    "acquirer webhook": "nowhere --none",
    "acquirer route": "--preview --merchant {merchant} --test",
    "acquirer rule-add": "nowhere",
    "acquirer fee": "simulator EUR 1.4 0.25",
    "proceeds read": "",
    "proceeds list": "",
    "proceeds correct": "9007199254740991 --less 0.05 --note theirs",
    "proceeds payouts": "",
    "proceeds margins": "",
    "fees show": "{merchant}",
    "fees set": "{merchant} JPY --fixed 40 --chargeback-fee 1500",
    "fees usual": "{merchant} JPY",
    "profile list": "",
    "profile show": "{merchant}",
    "profile accept": "{merchant}",
    "profile refuse": "{merchant} --reason unreadable",
    "operator create": "--email operator@pay.example",
    "operator list": "",
    "pingback list": "",
    "pingback show": "{pingback}",
    "pingback resend": "{pingback}",
    "mail list": "",
    "mail resend": "1",
    "alarm list": "",
    "alarm settle": "9007199254740991",
    "alarm accept": "9007199254740991 --note explained",
    "subscription list": "",
    "subscription show": "{subscription}",
    "subscription missed": "{merchant}",
    "subscription change": "{subscription} --price 12.00",
    "subscription pause": "{subscription}",
    "subscription resume": "{subscription}",
    "subscription undo": "{subscription}",
    "subscription item add": "{subscription} 5.00 Set-up",
    "subscription item list": "{subscription}",
    "subscription item take-back": "{subscription} 9007199254740991",
    "subscription cancel": "{subscription}",
    "coupon list": "{merchant}",
    "coupon add": "{merchant} SPRING --percent 10",
    "coupon switch-off": "{merchant} 9007199254740991",
    "package list": "{merchant}",
    "package move": "{merchant} --from 1 --to 9007199254740991",
    "package moves": "{merchant}",
    "package take-back": "{merchant} 9007199254740991",
    "clock show": "{merchant}",
    "clock advance": "{merchant} 1d",
    "chargeback list": "{merchant}",
    "chargeback open": "{payment}",
    "chargeback show": "{chargeback}",
    "chargeback evidence": "{chargeback} delivered",
    "chargeback reckon": "{chargeback} 1.00",
    "chargeback win": "{chargeback}",
    "chargeback lose": "{chargeback}",
    "chargeback waiting": "",
    "payout record": "{merchant} 1.00 USD --reference T-1",
    "payout account": "{merchant}",
    "payout list": "{merchant}",
    "vault status": "",
    "vault reseal": "",
    "vault sweep": "",
    "customer erase": "{merchant} --email ada@example.com --end --yes",
    "clock reset": "{merchant} --yes",
    "acquirer verify": "simulator",
}
"""Each command that knows --json, with words that it can work on."""

SOME = [
    name
    for place, name in enumerate(WORDS)
    if place % 5 == 0 or name in ("undo", "hold accept", "chargeback open", "chargeback win")
]
"""What the short form looks at: one of every five, one that is refused,
and what others need the id of.
"""

REFUSED = {
    "acquirer add", "acquirer disable", "acquirer enable", "acquirer currencies", "acquirer key",
    "acquirer rule-add", "acquirer webhook",
    "alarm accept", "alarm settle", "chargeback lose", "chargeback reckon", "undo", "mail resend", "merchant go-live",
    "merchant guard lift", "merchant move", "cell add", "cell check", "cell maps",
    "payout account", "payout record", "pingback resend", "proceeds correct", "profile accept", "profile refuse",
    "coupon switch-off", "package move", "package take-back", "subscription item take-back",
}  # fmt: skip
"""Those that find nothing to do here: then stdout is empty."""


OF_ALL_MERCHANTS = {"reconcile", "proceeds read", "restored", "vault reseal"}
"""Those whose end depends on what others have left in the database:
either way stdout has the result."""


def commands_with_json(command: Any, *path: str) -> Iterator[str]:
    for name, below in getattr(command, "commands", {}).items():
        yield from commands_with_json(below, *path, name)
    if any("--json" in given.opts for given in command.params):
        yield " ".join(path)


def test_every_command_with_json_is_looked_at() -> None:
    assert sorted(commands_with_json(typer.main.get_command(cli.command_line()))) == sorted(WORDS)


@longer
async def test_json_stands_alone_on_stdout_whatever_is_logged(
    paydesk: Any,
    account: dict[str, Any],
    subscription: int,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = settings.load_settings

    def logging(**given: Any) -> Any:
        structlog.get_logger().error(LINE)
        return honest(**given)

    for module in (connecting, verifying):
        monkeypatch.setattr(module, "load_settings", logging)
    # Who read disputes in another test and was broken off has them for a minute.
    await set_back.banks_tell_again(database)
    other_cell = tmp_path / "other_cell.env"
    settings_there = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nowhere", "SECRET_KEY": generate_secret()}
    settings_there["VAULT_KEYS"] = generate_key_setting()
    other_cell.write_text("".join(f"PAYDESK_{name}={value}\n" for name, value in settings_there.items()))
    ids = {"merchant": account["id"], "subscription": subscription, "other_cell": other_cell}
    for noun in ("payment", "pingback"):
        ids[noun] = await database.fetchval(f"select max(id) from {noun} where merchant_id = $1", account["id"])
    for name in at_length(list(WORDS), SOME):
        words = WORDS[name]
        if name == "hold accept":
            await breaking.say(database, "history", {}, held_at=utc_now(), held_because="restored")
        said = await paydesk(*name.split(), *words.format(**ids).split(), "--json")
        assert LINE in said.err, name
        if name in OF_ALL_MERCHANTS:
            assert isinstance(said.result, dict), (name, said)
            continue
        assert (said.status, said.out == "") == ((1, True) if name in REFUSED else (0, False)), (name, said)
        result = said.out and said.result
        if name == "chargeback open":
            ids["chargeback"] = result["id"]
