"""The process of `paydesk run` that does the background work."""

from __future__ import annotations

from paydesk.commands.connecting import stop_on_signals
from paydesk.commands.supervising import READY, Channel
from paydesk.database.metrics import measure_pools
from paydesk.database.pool import connected
from paydesk.equipment import history_of, live_acquirer, mailbox_of, payment_desk, test_acquirer, vault_of
from paydesk.loops.watching import watched
from paydesk.settings import Settings
from paydesk.worker import work


async def do_work(settings: Settings, channel: Channel) -> None:
    """Do the background work until told to stop."""
    stop, vault, history = stop_on_signals(), vault_of(settings), history_of(settings)
    most = settings.database_connections
    async with (
        watched("worker", on_beat=channel.beat, on_look=measure_pools),
        connected(settings.database_url, most=most, name="work", meet=history.meet) as pool,
        connected(settings.database_url, most=1, least=0, name="words") as words,
    ):
        banks = test_acquirer(settings), live_acquirer(settings)
        desk = payment_desk(settings, pool, vault, *banks, gate=history.gate)
        channel.say(READY)
        try:
            mailbox = mailbox_of(settings)
            await work(settings, pool, vault, desk, stop, history=history, mailbox=mailbox, words=words)
        finally:
            for each in desk.acquirers.values():
                await each.close()
