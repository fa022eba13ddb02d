"""Where images are made: namespaces in which an ordinary user is root.

Every step of a build runs in namespaces of its own, so that a killed build leaves neither a
process nor a mount. For an ordinary user these include a user namespace (user_namespaces(7)): the
numbers of root and of the other accounts of an image are those that /etc/subuid gives the user.
The mapping is the same at every call, so that one step can work on the files of another.
"""

import os
import pwd
from pathlib import Path

from hpcsite.errors import CouldNotRunError
from hpcsite.image import mounts, tools

# Debian's accounts end at 65534, nobody.
_NUMBERS = 65536
_SUBORDINATE = (Path("/etc/subuid"), Path("/etc/subgid"))
_RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


def command() -> list[str]:
    """Return the words before a command that make it run as root, alone and not for longer than us.

    A user namespace comes first, and the death of whoever called ends all of it.
    """
    user = [] if os.geteuid() == 0 else ["--user", "--map-auto", "--map-root-user"]
    return [
        *("setpriv", "--pdeathsig", "KILL", "unshare", *user),
        *("--pid", "--fork", "--kill-child", "--mount", "--mount-proc"),
    ]


def run(argv: list[str], *, env: dict[str, str] | None = None, hint: str = "") -> str:
    """Run a command there and return what it printed.

    Raises:
        CouldNotRunError: it failed; carries what it said.
    """
    return tools.run([*command(), *argv], env=env, hint=hint)


def require() -> None:
    """Check that this user can be root there.

    Raises:
        CouldNotRunError: says what is missing and how to get it.
    """
    tools.require(["setpriv", "unshare"])
    if os.geteuid() == 0:
        return
    tools.require(["newuidmap", "newgidmap"])
    user = pwd.getpwuid(os.getuid()).pw_name
    for path in _SUBORDINATE:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if not has_range(text, user, os.getuid()):
            raise CouldNotRunError(
                f"{path} gives {user} no {_NUMBERS} numbers, which images need for their accounts",
                hint=f"as root: usermod --add-subuids 100000-{99999 + _NUMBERS} "
                f"--add-subgids 100000-{99999 + _NUMBERS} {user} (other users need other numbers), "
                "or run the same command as root",
            )
    done = tools.attempt([*command(), "true"])
    if done.returncode != 0:
        raise CouldNotRunError(
            f"this user cannot make a user namespace: {done.stderr.strip()}",
            hint=_refused(done.stderr),
        )


def has_range(text: str, user: str, number: int) -> bool:
    """Tell whether a subuid(5) file gives a user enough numbers in one range."""
    for fields in (line.strip().split(":") for line in text.splitlines()):
        mine = len(fields) == 3 and fields[0] in {user, str(number)}
        if mine and fields[2].isdigit() and int(fields[2]) >= _NUMBERS:
            return True
    return False


def remove(folder: Path) -> None:
    """Remove a folder with files of any account of an image, and what is mounted in it."""
    if os.geteuid() == 0:
        mounts.remove_tree(folder)
    elif folder.exists():
        run(["rm", "--recursive", "--force", "--one-file-system", str(folder)])


def _refused(said: str) -> str:
    if "unrecognized option" in said:
        return "util-linux 2.38 or newer is needed; or run the same command as root"
    if _RESTRICTED.exists() and _RESTRICTED.read_text(encoding="ascii").strip() == "1":
        return (
            "AppArmor forbids it to ordinary users; as root: sysctl "
            "kernel.apparmor_restrict_unprivileged_userns=0, or run the same command as root"
        )
    return (
        "as root: sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000; in a "
        "container it may be forbidden altogether. Or run the same command as root"
    )
