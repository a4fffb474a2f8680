"""Acquirers: the banks that move the money, all behind the one interface in `interface.py`."""
