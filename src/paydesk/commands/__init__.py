"""The commands of `paydesk`: each translates words on the command line into a call
of the domain.
"""
