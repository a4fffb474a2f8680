"""Whoever goes to another cell keeps nobody else's values from the newest key of the vault: what is
theirs is left, and sealed anew once they are there.
"""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from tests.domain.moving.play import Cell, Killed, Play, going, killing

from paydesk.adapters.vault import Vault, generate_key_setting
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step
from paydesk.domain.sealing.resealing import reseal


async def under(cell: Cell, vault: Vault) -> dict[int, bool]:
    """Whether all of a merchant's cards and keys are under the newest key, by merchant."""
    rows = await cell.database.fetch(
        "select merchant_id, bool_and(vault_key_id = $1) as anew from (select merchant_id, vault_key_id from card"
        " where number_sealed is not null union all select merchant_id, vault_key_id from merchant_key) v"
        " group by merchant_id",
        vault.current_key_id,
    )
    return {row["merchant_id"]: row["anew"] for row in rows}


@pytest.mark.parametrize("step", [Step.copied, Step.closed])
async def test_what_others_have_is_sealed_anew_while_somebody_is_on_the_way(
    joined: Play, step: Step, capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(Killed):
        await move_merchant(going(joined), passed=killing(step))
    whose, cell = joined.merchant.id, joined.here if step is Step.closed else joined.there
    keys = f"{generate_key_setting()},{cell.settings.vault_keys.get_secret_value()}"
    newest = Vault.from_settings(vault_keys=keys, secret_key=cell.settings.secret_key.get_secret_value())
    capsys.readouterr()
    await reseal(cell.database, newest)
    left = re.findall(r"under (?:their|its) key.*place=(\w+)", "".join(capsys.readouterr()))
    assert sorted(left) == sorted(set(left)), "said once, however many these are"
    assert "card_numbers" in left
    found = await under(cell, newest)
    assert found.pop(whose) is False
    assert set(found.values()) <= {True}
    await move_merchant(going(joined))
    await reseal(joined.there.database, newest)
    assert (await under(joined.there, newest))[whose] is (cell is joined.there)
