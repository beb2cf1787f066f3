"""The one link to the aggregator: codes go out, plans and receipts come in."""
