"""Merchants: their sides, keys and terms, and what was refused at their door."""
