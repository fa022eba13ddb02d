"""A stored run turned into text, HTML, JUnit and JSON; pure functions."""
