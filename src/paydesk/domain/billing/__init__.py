"""Billing: charging what subscriptions owe, with the card that stands for it,
and the page where a customer sees it.
"""
