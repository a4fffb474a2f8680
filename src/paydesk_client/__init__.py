"""Paydesk for merchants: build the checkout form, verify pingbacks. Standard library only."""
