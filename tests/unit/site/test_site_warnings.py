"""Warnings do not make a site invalid, and a site may accept them with a reason."""

from collections.abc import Iterator

import pytest

from hpcsite.errors import InvalidSiteError, Problem
from hpcsite.site import load
from hpcsite.site.codes import CODES, Code
from hpcsite.site.draft import Draft
from hpcsite.site.rules import RULES
from tests.unit.site.mini import SiteFolder

HOSTS, SITE = "hosts.yml", "group_vars/all/site.yml"
LOW, HOT = "HPC1998", "HPC1999"


def doubtful(draft: Draft) -> Iterator[Problem]:
    """Doubt one key, one host, and an element of a host's key."""
    yield draft.problem("doubtful uid", ("site_users", 0, "uid"), "look", code=LOW)
    yield draft.host_problem("doubtful host", "gpu01", "look", code=HOT)
    yield draft.problem("doubtful address", ("ansible_host",), "look", "gpu02", code=HOT)


@pytest.fixture
def doubted(folder: SiteFolder, monkeypatch: pytest.MonkeyPatch) -> SiteFolder:
    """Give the valid site, and a rule that has three warnings about it."""
    for number in (LOW, HOT):
        monkeypatch.setitem(CODES, number, Code(number, "doubtful", "Why.", "What.", warning=True))
    monkeypatch.setattr(load, "RULES", (*RULES, doubtful))
    return folder


def acknowledge(folder: SiteFolder, *entries: str) -> None:
    folder.edit(SITE, "", "site_acknowledged:\n" + "".join(f"  - {entry}\n" for entry in entries))


def found(folder: SiteFolder) -> list[tuple[str, str]]:
    """Message and accepted reason of each warning."""
    return [(w.message, w.acknowledged) for w in folder.load().warnings]


def test_warnings_do_not_make_a_site_invalid(doubted: SiteFolder) -> None:
    warnings = doubted.load().warnings
    assert [(w.message, w.code, w.acknowledged) for w in warnings] == [
        ("doubtful uid", LOW, ""),
        ("doubtful host", HOT, ""),
        ("doubtful address", HOT, ""),
    ]
    assert [w.where.line for w in warnings if w.where] == [
        doubted.line(SITE, "uid: 2001"),
        doubted.line(HOSTS, "gpu01:"),
        doubted.line(HOSTS, "10.9.0.22"),
    ]


def test_valid_site_has_no_warnings(folder: SiteFolder) -> None:
    assert folder.load().warnings == ()


def test_warnings_stand_beside_the_mistakes(doubted: SiteFolder) -> None:
    doubted.edit(SITE, "uid: 2002", "uid: 2001")
    with pytest.raises(InvalidSiteError, match=r"has 1 error$") as caught:
        doubted.load()
    assert [p.code for p in caught.value.problems] == ["HPC1504"]
    assert [p.code for p in caught.value.warnings] == [LOW, HOT, HOT]


def test_a_warning_about_a_key_hides_no_mistake_in_it(doubted: SiteFolder) -> None:
    doubted.edit(SITE, "uid: 2001", "uid: 64030")
    with pytest.raises(InvalidSiteError) as caught:
        doubted.load()
    assert [p.code for p in caught.value.problems] == ["HPC1503"]


@pytest.mark.parametrize(
    ("entry", "accepted"),
    [
        (f"{{code: {HOT}, reason: known}}", ["doubtful host", "doubtful address"]),
        (f"{{code: {HOT}, key: gpu01, reason: known}}", ["doubtful host"]),
        (f"{{code: {HOT}, key: gpu02, reason: known}}", ["doubtful address"]),
        (f"{{code: {HOT}, key: ansible_host, reason: known}}", ["doubtful address"]),
        (f"{{code: {LOW}, key: 'site_users[alice].uid', reason: known}}", ["doubtful uid"]),
        (f"{{code: {LOW}, key: 'site_users[alice]', reason: known}}", ["doubtful uid"]),
        (f"{{code: {LOW}, key: site_users, reason: known}}", ["doubtful uid"]),
    ],
)
def test_acknowledged_warning_keeps_its_reason(
    doubted: SiteFolder, entry: str, accepted: list[str]
) -> None:
    acknowledge(doubted, entry)
    messages = ("doubtful uid", "doubtful host", "doubtful address")
    assert found(doubted) == [(m, "known" if m in accepted else "") for m in messages]


@pytest.mark.parametrize("key", ["site_user", "'site_users[bob]'", "gpu0", "gpu03"])
def test_acknowledgement_of_nothing_is_a_warning(doubted: SiteFolder, key: str) -> None:
    acknowledge(doubted, f"{{code: {LOW}, key: {key}, reason: known}}")
    (unused,) = [w for w in doubted.load().warnings if w.code == "HPC1052"]
    assert unused.message == f"there is no warning {LOW} of {key.strip(chr(39))} to acknowledge"
    assert unused.key == "site_acknowledged[0]"
    assert unused.where is not None
    assert unused.where.line == doubted.line(SITE, f"code: {LOW}")
    assert ("doubtful uid", "") in found(doubted)


def test_acknowledgements_are_not_called_unused_while_there_are_mistakes(
    doubted: SiteFolder,
) -> None:
    acknowledge(doubted, f"{{code: {LOW}, key: site_groups, reason: known}}")
    doubted.edit(SITE, "uid: 2002", "uid: 2001")
    with pytest.raises(InvalidSiteError) as caught:
        doubted.load()
    assert "HPC1052" not in [p.code for p in caught.value.warnings]


@pytest.mark.parametrize(
    ("number", "says", "code"),
    [
        ("HPC1203", "HPC1203 is an error, and only warnings can be acknowledged", "HPC1051"),
        ("HPC0000", "there is no code HPC0000", "HPC1050"),
        ("HPC12", 'site_acknowledged[0].code is "HPC12"; it must be a code', "HPC1040"),
    ],
)
def test_what_cannot_be_acknowledged(folder: SiteFolder, number: str, says: str, code: str) -> None:
    acknowledge(folder, f"{{code: {number}, reason: known}}")
    (problem,) = folder.problems()
    assert says in problem.message
    assert problem.code == code
    assert problem.where is not None
    assert problem.where.line == folder.line(SITE, f"code: {number}")


def test_acknowledgement_by_position_is_refused(doubted: SiteFolder) -> None:
    """A user who is added above would inherit it."""
    acknowledge(doubted, f"{{code: {LOW}, key: 'site_users[0].uid', reason: known}}")
    problem = next(p for p in doubted.problems() if p.code == "HPC1053")
    assert problem.hint == "name it: key: site_users[alice].uid"


def test_acknowledgement_needs_a_reason(folder: SiteFolder) -> None:
    acknowledge(folder, "{code: HPC1052}", "{code: HPC1052, reason: ' '}")
    assert [p.code for p in folder.problems()] == ["HPC1036", "HPC1040"]


def test_mistyped_code_in_an_acknowledgement_is_known_again(folder: SiteFolder) -> None:
    acknowledge(folder, "{code: HPC1099, reason: known}")
    (problem,) = folder.problems()
    assert problem.hint.startswith("did you mean HPC10")
