"""Cells: deployments that share out merchants, and the directory of what is in which of them."""
