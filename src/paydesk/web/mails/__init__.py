"""Mails as people read them: texts and HTML in their language, and the mailbox page
of `paydesk run`.
"""
