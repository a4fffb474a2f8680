"""Mails: queued with the event that they tell."""
