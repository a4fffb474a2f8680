"""What rests sealed by the vault: under which keys, moved to the newest,
and gone once nothing needs it.
"""
