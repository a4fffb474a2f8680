"""Keys under which a call that was sent twice is made once."""

_LONGEST_KEY = 255


def checked(key: str) -> str:
    """The key, if the service can take it. Raises: ValueError."""
    if not (0 < len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable() and " " not in key):
        raise ValueError(f"idempotency_key needs 1 to {_LONGEST_KEY} visible ASCII characters; take str(uuid.uuid4())")
    return key
