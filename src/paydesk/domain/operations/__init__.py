"""What an operator watches and does over all merchants: money to pay out, disputes, open outcomes,
the machinery.
"""
