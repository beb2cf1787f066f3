"""The archive counted anew, on DuckDB or Spark, and compared with the store."""
