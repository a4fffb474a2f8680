"""What the consoles of merchants and operators stand on:
who may come, one visit, and the frame of every page.
"""
