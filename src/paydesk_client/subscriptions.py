"""What a merchant's server does with subscriptions (interface.md §8.4)."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from paydesk_client.calls import Calls


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The subscriptions of one merchant."""

    calls: Calls

    def cancel(self, subscription_id: int | str) -> dict[str, Any]:
        """Cancel a subscription at once; nothing is charged any more,
        and one `subscription_cancelled` pingback comes.

        A charge that was already on its way to the bank stands if the bank approves it. Cancelling
        again changes nothing and answers the same, so it is safe to try again after an error.

        Args: subscription_id is the `subscription.id` of a pingback.
        Returns: the subscription as it stands now, in the shape that pingbacks have.
        Raises: ApiError, with status 404 if the merchant has no such subscription, 401 if the key
            is wrong, 0 if no answer came.
        """
        cancelled: dict[str, Any] = self.calls.post(f"/api/subscription/{quote(str(subscription_id), safe='')}/cancel")
        return cancelled
