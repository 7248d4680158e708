"""Odradek for Spark: `import odradek.spark`, then `spark.read.format("odradek")`, and so on.

The import finds a Java where the machine has none; the format registers itself, on workers too
(pyspark_odradek.py is found by Spark).
"""

from odradek.spark.java import prepare

prepare()
