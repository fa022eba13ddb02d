"""A YAML file read into nodes that know their lines; every way in which that fails, in words.

Only the node tree is made, never Python objects: nothing in a file is executed or expanded.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from hpcsite.errors import Location, Problem

MAX_NODES = 200_000
MAX_DEPTH = 60
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "tag:yaml.org,2002:merge"
_KNOWN_TAGS = frozenset(
    {
        *("!vault", "!vault-encrypted", "!unsafe"),
        *(
            f"tag:yaml.org,2002:{name}"
            for name in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "value")
        ),
    }
)


@dataclass
class YamlFile:
    """`root` is None for a file that is empty, encrypted or broken."""

    path: Path
    root: yaml.Node | None = None
    encrypted: bool = False
    problems: list[Problem] = field(default_factory=list)


def line_of(node: yaml.Node) -> int:
    """Line of a node, counted from 1."""
    return int(node.start_mark.line) + 1


def key_text(node: yaml.Node) -> str | None:
    """Text of a mapping's key; None for a key that is no scalar."""
    return str(node.value) if isinstance(node, yaml.ScalarNode) else None


def items(node: yaml.MappingNode) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """Each key of a mapping with its key and value nodes; `<<` is followed, own keys come last."""
    own: list[tuple[str, yaml.Node, yaml.Node]] = []
    for key, value in node.value:
        if key.tag == _MERGE:
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for mapping in merged:
                if isinstance(mapping, yaml.MappingNode):
                    yield from items(mapping)
        elif (text := key_text(key)) is not None:
            own.append((text, key, value))
    yield from own


def read_yaml(path: Path) -> YamlFile:
    """Read one file; whatever is wrong with it becomes a problem of the result."""
    result = YamlFile(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        result.problems.append(
            Problem(
                f"cannot be read: {error.strerror}",
                Location(path),
                hint="check its permissions",
                code="HPC1004",
            )
        )
        return result
    if content.startswith(b"$ANSIBLE_VAULT;"):
        result.encrypted = True
        return result
    text = _decoded(content, result)
    if text is not None:
        _compose(text, result)
    return result


def _decoded(content: bytes, result: YamlFile) -> str | None:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        result.problems.append(
            Problem(
                f"YAML: byte 0x{content[error.start]:02x} is not UTF-8 text",
                Location(result.path, line),
                hint="save the file as UTF-8, or move it away if it is not YAML",
                code="HPC1010",
            )
        )
        return None


def _compose(text: str, result: YamlFile) -> None:
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        result.problems.append(_syntax_problem(result.path, text, error))
    except yaml.YAMLError as error:
        result.problems.append(_character_problem(result.path, text, error))
    except RecursionError:
        result.problems.append(_too_deep(Location(result.path)))
    else:
        if root is not None:
            result.problems.extend(_structure_problems(result.path, root))
            result.root = None if result.problems else root


def _syntax_problem(path: Path, text: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    number = mark.line if mark else 0
    lines = text.splitlines()
    line = lines[number] if number < len(lines) else ""
    # A tab is complained of on the line that it begins, or on the line before.
    for candidate in (number, number + 1):
        if candidate < len(lines) and re.match(r" *\t", lines[candidate]):
            return Problem(
                "YAML: a tab at the beginning of the line",
                Location(path, candidate + 1),
                hint="YAML is indented with spaces only: replace the tab",
                code="HPC1012",
            )
    if "another document" in str(error.problem):
        return Problem(
            "YAML: a second document begins here",
            Location(path, number + 1),
            hint="keep one document in a file: remove the ---",
            code="HPC1013",
        )
    begun = error.context_mark
    context = f" (begun in line {begun.line + 1})" if begun and begun.line != number else ""
    # The C library gives up on nesting by itself, before it can be measured.
    code = "HPC1015" if "nesting depth" in str(error.problem) else "HPC1014"
    return Problem(
        f"YAML: {error.problem}{context}",
        Location(path, min(number, max(len(lines) - 1, 0)) + 1),
        hint=_syntax_hint(str(error.problem), line),
        code=code,
    )


def _syntax_hint(problem: str, line: str) -> str:
    if "mapping values are not allowed" in problem:
        return 'put a value that holds ": " in quotes, and check the indentation of this line'
    if "cannot start any token" in problem:
        return f"put the value in quotes: {line.strip()}"
    if "undefined alias" in problem:
        return "a value that begins with * needs quotes"
    return "check quotes, brackets and indentation of this line and of those before it"


def _character_problem(path: Path, text: str, error: yaml.YAMLError) -> Problem:
    """Find the control character that the reader refuses; it names an offset only."""
    bad = re.search(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    if bad is None:
        return Problem(
            f"YAML: {error}", Location(path), hint="save the file as UTF-8 text", code="HPC1011"
        )
    return Problem(
        f"YAML: control character 0x{ord(bad[0]):02x}",
        Location(path, text[: bad.start()].count("\n") + 1),
        hint="remove it, or move the file away if it is not YAML",
        code="HPC1011",
    )


def _too_deep(where: Location) -> Problem:
    return Problem(
        f"YAML: nested more than {MAX_DEPTH} levels deep",
        where,
        hint="flatten the value",
        code="HPC1015",
    )


def _structure_problems(path: Path, root: yaml.Node) -> list[Problem]:
    """Find what composes but must not be used: loops, explosions, duplicate keys, unknown tags."""
    checker = _Structure(path)
    size = checker.measure(root, ())
    if size > MAX_NODES and not checker.problems:
        checker.problems.append(
            Problem(
                f"YAML: the aliases (*name) of this file expand to more than {MAX_NODES} values",
                Location(path),
                hint="write the values out, or use fewer aliases",
                code="HPC1016",
            )
        )
    return checker.problems


class _Structure:
    """Walks each node once, however often aliases repeat it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self._sizes: dict[int, int] = {}

    def measure(self, node: yaml.Node, above: tuple[int, ...]) -> int:
        """Count the values below a node, as often as aliases repeat them."""
        if id(node) in above:
            message = "an alias (*name) inside of the value that it repeats"
            self._add(message, node, "remove it", code="HPC1017")
            return 1
        if len(above) > MAX_DEPTH:
            self.problems.append(_too_deep(Location(self.path, line_of(node))))
            return 1
        if id(node) not in self._sizes:
            self._check_tag(node)
            below = (*above, id(node))
            self._sizes[id(node)] = 1 + sum(
                self.measure(child, below) for child in self._children(node)
            )
        return self._sizes[id(node)]

    def _children(self, node: yaml.Node) -> list[yaml.Node]:
        if isinstance(node, yaml.MappingNode):
            self._check_keys(node)
            return [value for _, value in node.value]
        return list(node.value) if isinstance(node, yaml.SequenceNode) else []

    def _check_keys(self, node: yaml.MappingNode) -> None:
        first: dict[str, int] = {}
        for key, _ in node.value:
            text = key_text(key)
            if text is None:
                hint = 'put a value with "{{ }}" in quotes'
                self._add("a key is a list or a mapping", key, hint, code="HPC1018")
            elif text in first and key.tag != _MERGE:
                self._add(
                    f"the key {text} stands here again; it is in line {first[text]} already",
                    key,
                    "keep one of the two: YAML silently drops the first",
                    code="HPC1019",
                )
            else:
                first[text] = line_of(key)

    def _check_tag(self, node: yaml.Node) -> None:
        if str(node.tag) not in _KNOWN_TAGS:
            hint = "put a value that begins with ! in quotes"
            self._add(f"unknown tag {node.tag}", node, hint, code="HPC1020")

    def _add(self, message: str, node: yaml.Node, hint: str, *, code: str) -> None:
        self.problems.append(
            Problem(f"YAML: {message}", Location(self.path, line_of(node)), hint=hint, code=code)
        )
