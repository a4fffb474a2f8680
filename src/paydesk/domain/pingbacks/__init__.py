"""Pingbacks: telling merchants' servers what happened, at least once (spec: Pingback receiver; wire.md §2)."""
