"""The test clock: moving a merchant's test side through time, and starting it anew."""
