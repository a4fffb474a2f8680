"""What can go wrong, said so that the reader knows what to do next;
each error knows its HTTP status.
"""

from __future__ import annotations

from typing import Final

from paydesk.core.card_numbers import masked
from paydesk.core.wording import without

IN_A_MOMENT: Final = 3
"""Seconds after which to ask again for what is only away, or being moved, for moments: what
`Retry-After` says to whoever is refused for that, at all doors."""


class PaydeskError(Exception):
    """Something that a user can understand and act on; the message is shown to them."""

    status = 400
    passing = False
    """Whether it speaks of the moment alone: the very same request may succeed later."""
    retry_after: int | None = None
    """Seconds after which it may, where that is known."""

    def __init__(self, message: str) -> None:
        # Messages repeat what was sent, and are kept with it.
        self.message = without(message, masked)
        super().__init__(self.message)


class Malformed(PaydeskError):
    """A field is missing or is not what was expected; `fields` names the culprits."""

    status = 400

    def __init__(self, message: str, *fields: str, passing: bool = False) -> None:
        super().__init__(message)
        self.fields = fields
        self.passing = passing


class Unauthorized(PaydeskError):
    """The key is missing or unknown."""

    status = 401
    passing = True


class Forbidden(PaydeskError):
    """The signature does not match what was sent."""

    status = 403


class NotFound(PaydeskError):
    """There is no such thing, or it belongs to somebody else."""

    status = 404


class Conflict(PaydeskError):
    """What was asked is not possible in the thing's present state, which may change."""

    status = 409
    passing = True


class Busy(Conflict):
    """Somebody else has the thing in hand for a moment: the very same request may succeed soon."""


class Gone(PaydeskError):
    """The thing has expired."""

    status = 410


class TooLarge(PaydeskError):
    """The request's body is over the limit."""

    status = 413


class TooMany(PaydeskError):
    """The sender has used up a limit; `retry_after` is in seconds."""

    status = 429
    passing = True
    retry_after: int

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(PaydeskError):
    """Something that Paydesk depends on does not answer just now;
    the message says what was done until then.
    """

    status = 503
    passing = True


class Held(Unavailable):
    """Nothing that moves money is begun just now, and nothing was;
    the same request may be sent again in `retry_after`.

    That is in seconds. Who only reads goes on.
    """

    retry_after: int

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unsure(PaydeskError):
    """The answer to a write was lost, and with it whether it was done;
    the message says how to find out.
    """

    status = 503
    passing = True


class SetupError(PaydeskError):
    """The deployment can't start as it is; the message is one line that names the remedy."""
