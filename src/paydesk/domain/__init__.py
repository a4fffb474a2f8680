"""What the business is, one package for each noun."""
