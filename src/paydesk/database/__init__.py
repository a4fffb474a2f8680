"""Connections, the embedded server and the schema."""
