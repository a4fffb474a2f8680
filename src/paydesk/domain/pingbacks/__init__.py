"""Pingbacks: telling merchants' servers what happened, at least once (interface.md §4.1)."""
