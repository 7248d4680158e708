"""Log directories as DataFrames, without a broker: a task for every segment file, or for some small ones."""
