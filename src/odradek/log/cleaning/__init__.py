"""Compaction: which logs are cleaned, what of them stays, and how it takes the place of what was there."""
