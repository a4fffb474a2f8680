"""What surrounds HTTP itself: how slow, how large and how many requests and connections may be."""
