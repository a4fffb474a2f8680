"""The guide at `/docs`: what docs/ says to a shop's programmers, to read beside the account."""
