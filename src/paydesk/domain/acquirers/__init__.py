"""Accounts at acquirers: which there are, and which of them a process has open."""
