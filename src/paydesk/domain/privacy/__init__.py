"""What is stored of one customer of a merchant: handing it out, erasing it,
erasing it again after a restore.
"""
