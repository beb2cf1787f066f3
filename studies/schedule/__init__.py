"""Whether intervals hold where homes report by their own ledgers' schedule."""
