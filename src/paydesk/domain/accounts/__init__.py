"""People who log in: sign-up and log-in, sessions, teams and what each role may do,
and the audit log.
"""
