"""Compaction: chooses the logs to clean, decides which records are kept, and replaces the segments."""
