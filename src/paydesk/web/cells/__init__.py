"""Requests that have come to another cell than their merchant's: passed on once, and taken."""
