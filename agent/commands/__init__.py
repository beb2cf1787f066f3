"""What a home's people ask the agent: check, status, ledger, explain, ports, read, probe."""
