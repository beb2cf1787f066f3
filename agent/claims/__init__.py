"""From readings to claims: slot values, the decision for each slot, and numbered batches."""
