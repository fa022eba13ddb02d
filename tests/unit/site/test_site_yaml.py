"""Files as people and accidents leave them: each one is one readable problem with its line."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.site.folder import MAX_BYTES, scan_folder
from hpcsite.site.yamlfile import MAX_DEPTH, read_yaml
from tests.unit.site.mini import SiteFolder

FILE = "group_vars/all/x.yml"

BROKEN = (
    ("tab that indents", "a:\n\t- b\n", 2, "a tab at the beginning", "spaces only", "HPC1012"),
    ("tab after a value", "a: 1\n\tb: 2\n", 2, "a tab at the beginning", "spaces only", "HPC1012"),
    (
        "open bracket",
        "a: 1\nb: [1,\n",
        2,
        "YAML: did not find expected node content",
        "brackets",
        "HPC1014",
    ),
    (
        "open quote",
        "a: 'x\nb: y\n",
        2,
        "unexpected end of stream (begun in line 1)",
        "quotes",
        "HPC1014",
    ),
    ("colon in a value", "a: b: c\n", 1, "mapping values are not allowed", "in quotes", "HPC1014"),
    (
        "bad indentation",
        "a: 1\n b: 2\n",
        2,
        "mapping values are not allowed",
        "indentation",
        "HPC1014",
    ),
    ("at sign", "a: @x\n", 1, "cannot start any token", "in quotes: a: @x", "HPC1014"),
    ("unknown alias", "a: 1\nb: *c\n", 2, "undefined alias", "begins with *", "HPC1014"),
    ("second document", "a: 1\n---\nb: 2\n", 2, "a second document", "remove the ---", "HPC1013"),
    ("control character", "a: 1\nb: \x07\n", 2, "control character 0x07", "remove it", "HPC1011"),
    (
        "template without quotes",
        "a: {{ x }}\n",
        1,
        "a key is a list or a mapping",
        "in quotes",
        "HPC1018",
    ),
    (
        "same key twice",
        "a: 1\nb: 1\na: 2\n",
        3,
        "a stands here again; it is in line 1",
        "keep one",
        "HPC1019",
    ),
    ("nested key twice", "a:\n  b: 1\n  b: 2\n", 3, "b stands here again", "keep one", "HPC1019"),
    ("unknown tag", "a: 1\nb: !foo x\n", 2, "unknown tag !foo", "in quotes", "HPC1020"),
    ("Python object", "a: !!python/object:os.system x\n", 1, "unknown tag", "in quotes", "HPC1020"),
    (
        "alias in itself",
        "a: &a\n  - *a\n",
        1,
        "inside of the value that it repeats",
        "remove it",
        "HPC1017",
    ),
    (
        "deep nesting",
        "a: " + "[" * 70 + "]" * 70,
        1,
        f"more than {MAX_DEPTH} levels",
        "flatten",
        "HPC1015",
    ),
    ("very deep nesting", "a: " + "[" * 100_000, 1, "maximum nesting depth", "brackets", "HPC1015"),
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case[0].replace(" ", "-"))
def test_broken_yaml_is_said_with_its_line(
    folder: SiteFolder, case: tuple[str, str, int, str, str, str]
) -> None:
    _, text, line, says, hint, code = case
    folder.write(FILE, text)
    (problem,) = folder.problems()
    assert says in problem.message
    assert hint in problem.hint
    assert problem.code == code
    assert problem.where is not None
    assert (problem.where.path, problem.where.line) == (folder.path / FILE, line)


def test_all_broken_files_are_said_at_once(folder: SiteFolder) -> None:
    folder.write("group_vars/all/a.yml", "a:\n\t- b\n")
    folder.write("host_vars/gpu01.yml", "a: [\n")
    folder.edit("hosts.yml", "    mariadb:\n", "    mariadb:\n\t\n")
    assert [file for file, _, _ in folder.places()] == [
        "group_vars/all/a.yml",
        "host_vars/gpu01.yml",
        "hosts.yml",
    ]


def test_bytes_that_are_no_text(folder: SiteFolder) -> None:
    (folder.path / FILE).write_bytes(b"a: 1\nb: caf\xe9\n")
    (folder.path / "group_vars/all/y.yml").write_bytes(bytes(range(256)) * 4)
    (first, second) = folder.problems()
    assert str(first.where) == f"{folder.path / FILE}:2"
    assert "byte 0xe9 is not UTF-8" in first.message
    assert first.code == second.code == "HPC1010"
    assert "not UTF-8" in second.message


def test_byte_order_mark_is_no_mistake(folder: SiteFolder) -> None:
    (folder.path / FILE).write_bytes(b"\xef\xbb\xbflocal_a: 1\n")
    assert read_yaml(folder.path / FILE).problems == []


def test_aliases_that_explode(folder: SiteFolder) -> None:
    lines = ["local_0: &n0 [1,1,1,1,1,1,1,1,1,1]"]
    lines += [f"local_{n}: &n{n} [{','.join([f'*n{n - 1}'] * 10)}]" for n in range(1, 12)]
    folder.write(FILE, "\n".join(lines))
    (problem,) = folder.problems()
    assert "expand to more than" in problem.message
    assert problem.code == "HPC1016"


def test_aliases_and_merges_are_allowed(folder: SiteFolder) -> None:
    folder.write(FILE, "local_a: &a {x: 1, y: 2}\nlocal_b: {<<: *a, y: 3}\nlocal_c: [*a, *a]\n")
    assert folder.problems() == []


def test_huge_file(folder: SiteFolder) -> None:
    with (folder.path / FILE).open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    (problem,) = folder.problems()
    assert "reads at most 4 MiB" in problem.message
    assert problem.code == "HPC1008"


def test_links_pipes_and_loops(folder: SiteFolder) -> None:
    (folder.path / "group_vars/all/gone.yml").symlink_to("nowhere")
    (folder.path / "group_vars/all/loop").symlink_to("..")
    os.mkfifo(folder.path / "group_vars/all/pipe.yml")
    messages = {file: message for file, _, message in folder.places()}
    assert messages == {
        "group_vars/all/gone.yml": "this symbolic link leads nowhere",
        "group_vars/all/loop/all": "this symbolic link leads back to a folder above it",
        "group_vars/all/pipe.yml": "this is not a regular file",
    }
    assert {problem.code for problem in folder.problems()} == {"HPC1005", "HPC1006", "HPC1007"}


def test_unreadable_file(folder: SiteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root reads everything, so the refusal is made here.
    opened = Path.open

    def refuse(path: Path, *arguments: str, **options: str) -> object:
        if path.name == "slurm.yml":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    (problem,) = folder.problems()
    assert str(problem) == (
        f"{folder.path}/group_vars/all/slurm.yml: cannot be read: Permission denied [HPC1004]"
        "\n\n"
        "hint: check its permissions"
    )


def test_folder_that_cannot_be_entered(folder: SiteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    is_dir = Path.is_dir

    def refuse(path: Path) -> bool:
        if path.parent.name == "group_vars":
            raise PermissionError(13, "Permission denied", str(path))
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", refuse)
    (problem,) = folder.problems()
    assert problem.message == "cannot be read: Permission denied"
    assert problem.where is not None
    assert problem.where.path == folder.path / "group_vars/all"


def test_file_that_a_folder_hides(folder: SiteFolder) -> None:
    folder.write("group_vars/all.yml", "site_domain: other.example\n")
    (problem,) = folder.problems()
    assert problem.where is not None
    assert problem.where.path == folder.path / "group_vars/all.yml"
    assert "Ansible does not read this file" in problem.message
    assert problem.code == "HPC1009"


def test_encrypted_file_needs_a_password(
    folder: SiteFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)
    folder.write(FILE, "$ANSIBLE_VAULT;1.1;AES256\n3333\n")
    (problem,) = folder.problems()
    assert "encrypted" in problem.message
    assert problem.code == "HPC1024"
    assert "ANSIBLE_VAULT_PASSWORD_FILE" in problem.hint


@pytest.mark.parametrize("text", ["- a\n- b\n", "hello\n"])
def test_variables_that_are_no_mapping(folder: SiteFolder, text: str) -> None:
    folder.write(FILE, text)
    (problem,) = folder.problems()
    assert "a mapping (`name: value` or `name:`) is expected here" in problem.message
    assert problem.code == "HPC1023"


@pytest.mark.parametrize("text", ["", "x\n", "- all\n"])
def test_inventory_without_groups(folder: SiteFolder, text: str) -> None:
    folder.write("hosts.yml", text)
    (problem,) = folder.problems()
    assert "holds no groups" in problem.message
    assert problem.code == "HPC1021"


def test_part_of_a_group_that_ansible_skips(folder: SiteFolder) -> None:
    folder.edit("hosts.yml", "    mariadb:\n      hosts:", "    mariadb:\n      host:")
    (problem,) = folder.problems()
    assert problem.where is not None
    assert problem.where.line == folder.line("hosts.yml", "      host:")
    assert "host is no part of the group mariadb" in problem.message
    assert problem.code == "HPC1022"


def test_what_ansible_passes_over_is_no_mistake(folder: SiteFolder) -> None:
    folder.write("README.md", "a: [\n")
    folder.write(".lab/x.yml", "a: [\n")
    folder.write("secrets/munge.key", "a: [\n")
    folder.write("group_vars/all/notes.txt", "a: [\n")
    folder.write("group_vars/all/.x.yml.swp", "a: [\n")
    assert folder.problems() == []


@pytest.mark.parametrize(
    ("make", "says", "code"),
    [
        (lambda path: None, "there is no such inventory folder", "HPC1001"),
        (lambda path: path.write_text("all:\n"), "the inventory is a file", "HPC1002"),
        (lambda path: path.mkdir(), "the folder holds no inventory file", "HPC1003"),
        (lambda path: path.symlink_to(path), "leads nowhere", "HPC1005"),
    ],
)
def test_path_that_is_no_inventory(tmp_path: Path, make: object, says: str, code: str) -> None:
    path = tmp_path / "site"
    make(path)  # type: ignore[operator]
    (problem,) = scan_folder(path).problems
    assert says in problem.message
    assert problem.where is not None
    assert problem.where.path == path
    assert problem.hint
    assert problem.code == code


@given(st.binary(max_size=300))
def test_no_bytes_make_the_reader_fail(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.yml"
    path.write_bytes(data)
    result = read_yaml(path)
    lines = data.count(b"\n") + data.count(b"\r") + 1
    for problem in result.problems:
        assert problem.message
        assert problem.hint
        assert problem.where is not None
        # YAML counts NEL, LS and PS (two and three bytes) as line breaks too.
        assert problem.where.line <= lines + len(data) // 2
