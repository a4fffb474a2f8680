"""Paydesk: a hosted checkout and subscriptions service that anyone can run."""

__version__ = "0.1.0"
