"""Payments: the checkout request, the attempt to pay it, and what comes of it."""
