"""The merchant's door: the business account, in a browser."""
