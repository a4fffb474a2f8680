"""What the business is: a room for each part of it, on floors; a room knows those below it."""
