"""The merchant's server's door: JSON calls with a private key, and the pages that explain them."""
