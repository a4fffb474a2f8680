"""Chargebacks: a customer's bank took money back, and the merchant may dispute it."""
