"""Log directories as DataFrames, without a broker: a task for every segment file."""
