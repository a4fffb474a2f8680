"""Coupons: what takes something off the price of a subscription, and how a checkout uses one."""
