"""Selling without code: payment links, which anybody may open to buy what they offer."""
