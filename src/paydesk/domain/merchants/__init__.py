"""Merchants: their accounts, keys and what was refused at their door."""
