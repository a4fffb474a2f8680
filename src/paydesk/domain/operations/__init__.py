"""What an operator watches and does over all merchants: money to pay out, chargebacks, open
outcomes, the machinery.
"""
