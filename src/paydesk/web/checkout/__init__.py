"""The customer's door: the checkout page, and the form by which shops send customers there."""
