"""What the business needs from outside: acquirers, the vault, HTTP to merchants."""
