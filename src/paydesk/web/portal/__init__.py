"""The customer's door to one subscription: what is charged when, past payments, cancelling,
another card.
"""
