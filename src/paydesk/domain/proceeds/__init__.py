"""Proceeds: what acquirers keep of what customers paid, and what they pay out to the operator's
bank, compared line by line with our books.
"""
