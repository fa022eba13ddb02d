"""Pure readers of tools' output: text in, values out; what cannot be read is an error."""


class UnreadableError(Exception):
    """A tool's output is not what it should be; the message says how."""
