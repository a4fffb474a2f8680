"""The operator's door: merchants and their requests, money that needs a hand, and the machinery."""
