"""Checks, suites, parsers of tools' output, statistics, the runner."""
