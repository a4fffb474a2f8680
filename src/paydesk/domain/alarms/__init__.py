"""What needs a person: raised by whatever met it, shown to the operator with its reason
until it is settled.
"""
