"""The aggregator's hands: stores, the broker's messages, receipts and plans going out."""
