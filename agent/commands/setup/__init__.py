"""`edge-ldp agent setup`: finds the meter, asks its owner, writes agent.toml and tries it."""
