"""The pytest plugin: options, marker and fixtures. Nothing heavy is imported before a fixture is used."""
