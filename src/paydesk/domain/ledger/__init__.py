"""The ledger: append-only double entry, and the rules that prove that nothing is lost
or taken twice.
"""
