"""Money, clock, errors, cards: pure rules without input or output."""
