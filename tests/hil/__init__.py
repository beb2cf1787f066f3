"""The same line under the same faults: pseudo-terminals, or real adapters (make test-hil)."""
