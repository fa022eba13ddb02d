"""A stored run turned into text, HTML, JUnit and JSON; pure functions."""

from hpcsite.report.junit import junit
from hpcsite.report.page import html
from hpcsite.report.text import text

__all__ = ["html", "junit", "text"]
