"""`python -m paydesk` is the command `paydesk`."""

from paydesk.cli import main

main()
