"""A merchant goes to another cell, with everything that is theirs."""
