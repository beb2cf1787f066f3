"""Messages in, one transaction each flush, receipts out."""
