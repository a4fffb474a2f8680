"""Deliveries: what shops say became of an order's goods, and what that does to money
that was only authorized.
"""
