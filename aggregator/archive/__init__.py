"""Every counted report as it came: a durable spool, and Parquet files by day."""
