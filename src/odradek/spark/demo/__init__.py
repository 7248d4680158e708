"""`odradek demo`: orders through Spark, exactly once, while driver and broker are killed; and the proof."""
