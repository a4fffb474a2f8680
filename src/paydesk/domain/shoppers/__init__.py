"""Shoppers: customers who come back to a shop, known by an address that they proved, and the
cards that they have saved there.
"""
