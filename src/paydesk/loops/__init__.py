"""Background loops: the one way to write them, and what watches over the event loop
that they run on.
"""
