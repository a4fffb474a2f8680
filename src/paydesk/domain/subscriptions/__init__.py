"""Subscriptions: what was agreed, when the next charge is due, and how it ends."""
