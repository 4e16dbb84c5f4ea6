"""Transactions of pyfolio."""

HEADER = ",amount,price,sid,symbol,txn_dollars\n"

LINES = """\
2004-01-09 00:00:00+00:00,448,15.54,0,AMD,-6961.92
2004-01-09 00:00:00+00:00,448,15.54,0,AMD,-6961.92
2004-01-12 00:00:00+00:00,-896,16.0,0,AMD,14336.0
"""
