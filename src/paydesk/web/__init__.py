"""The doors: one package for each kind of visitor."""
