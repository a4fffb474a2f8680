from __future__ import annotations

from typing import Any

from tests import breaking

from paydesk.adapters.vault import generate_key_setting
from paydesk.domain.cells.fencing import fence, lift
from paydesk.domain.moving.tables import GUARDED


async def test_a_rotation_from_end_to_end(
    account: dict[str, Any], subscription: int, environment: dict[str, str], paydesk: Any
) -> None:
    old = environment["PAYDESK_VAULT_KEYS"]
    new = generate_key_setting()
    old_id, new_id = old.partition(":")[0], new.partition(":")[0]

    def here(report: dict[str, Any], key: str) -> dict[str, int]:
        return {place["name"]: place["by_key"][key] for place in report["places"] if key in place["by_key"]}

    before = (await paydesk("vault", "status", "--json")).result
    assert before["newest_key"] == old_id
    assert here(before, old_id) == {"private_keys": 1, "card_numbers": 1}
    assert {place["table"] for place in before["places"]} >= {"merchant_key", "card", "person", "business_profile"}

    environment["PAYDESK_VAULT_KEYS"] = f"{new},{old}"
    text = (await paydesk("vault", "status")).out
    assert "older" in text
    assert "to charge running subscriptions" in text
    done = await paydesk("vault", "reseal", "--json")
    assert done.result["moved"]["private_keys"] == 1
    assert here(done.result, new_id) == {"private_keys": 1, "card_numbers": 1}
    assert here(done.result, old_id) == {}

    environment["PAYDESK_VAULT_KEYS"] = new
    again = await paydesk("vault", "reseal")
    assert "sealed anew under" in again.out
    assert "0 values" in again.out


async def test_what_is_left_under_a_key_that_is_gone_is_said(
    account: dict[str, Any], environment: dict[str, str], paydesk: Any
) -> None:
    environment["PAYDESK_VAULT_KEYS"] = generate_key_setting()
    said = await paydesk("vault", "reseal")
    assert said.status == 1
    assert "put that key back behind" in said.err
    assert "not configured" in said.out


async def test_sweeping_erases_what_nothing_needs(
    account: dict[str, Any], subscription: int, paydesk: Any, database: Any
) -> None:
    await paydesk("vault", "sweep")
    assert (await paydesk("vault", "sweep", "--json")).result == {"erased": 0, "links_hidden": 0}
    await paydesk("subscription", "cancel", subscription)
    await breaking.say(database, "card", {"merchant_id": account["id"]}, number_sealed=bytes.fromhex("01"))
    assert (await paydesk("vault", "sweep")).out == "erased: 1 card number\nhidden: 0 links\n"


async def test_sweeping_leaves_who_is_on_the_way_to_another_cell(
    account: dict[str, Any], subscription: int, paydesk: Any, database: Any
) -> None:
    await paydesk("subscription", "cancel", subscription)
    whose = {"merchant_id": account["id"]}
    await breaking.say(database, "card", whose, number_sealed=bytes.fromhex("01"), fingerprint=bytes.fromhex("02"))
    await breaking.say(database, "subscription", whose, portal_token=f"t{account['id']:x}-old", portal_seed=None)
    await fence(database, account["id"], other_cell=2, tables=GUARDED)
    said = await paydesk("vault", "sweep")
    assert (said.status, said.out) == (0, "erased: 0 card numbers\nhidden: 0 links\n")
    assert f"merchants {account['id']}; call this again" in said.err
    await lift(database, account["id"], tables=GUARDED)
    said = await paydesk("vault", "sweep")
    assert (said.out, said.err) == ("erased: 1 card number\nhidden: 1 link\n", "")
