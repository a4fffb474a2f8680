"""What a team sees of its business and does in its account:
by permission, and kept in the audit log.
"""
