"""What a thread beside the event loop sees of the pools."""

from prometheus_client import REGISTRY

from paydesk.database.metrics import measure_pools
from paydesk.database.pool import connected


def measured(pool: str) -> dict[str, float]:
    measure_pools()
    found = {
        state: REGISTRY.get_sample_value("paydesk_database_connections", {"pool": pool, "state": state})
        for state in ("in_use", "idle", "most")
    }
    return {state: value for state, value in found.items() if value is not None}


async def test_a_pool_with_a_name_shows_what_is_in_use(database_url: str) -> None:
    async with connected(database_url, most=3, name="measured here") as pool:
        assert measured("measured here") == {"in_use": 0, "idle": 1, "most": 3}
        async with pool.acquire(), pool.acquire():
            assert measured("measured here") == {"in_use": 2, "idle": 0, "most": 3}
        assert measured("measured here") == {"in_use": 0, "idle": 2, "most": 3}
    assert measured("measured here")["in_use"] == 0


async def test_a_pool_without_a_name_is_not_measured(database_url: str) -> None:
    async with connected(database_url, most=1):
        assert measured("") == {}
