"""Check `storage/root_squash`: root of a client is nobody on the server.

The one check that needs root on compute nodes: it asks by ssh, as the inventory's user, and leaves
nothing. Where nobody gives it root, it is a SKIP.
"""

import re
from collections.abc import Mapping, Sequence

from hpcsite.verify.context import Context
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.results import Status
from hpcsite.verify.suites.storage_mounts import Folder, left_out, mounts
from hpcsite.verify.transport import UnreachableError

# Enough to see each way in which a server's exports can tell clients apart: by network and group.
_AT_MOST = 4
_WITHIN_S = 10
_AS_ROOT = 'if [ "$(id -u)" = 0 ]; then exec "$@"; else exec sudo -n "$@"; fi'
# A hung server must not hang this: a fatal signal ends the wait (nfs(5), `hard`).
_SCRIPT = f"""
[ "$(id -u)" = 0 ] || exit 9
echo root
name=$1; shift
for path in "$@"; do
  said=$(timeout -s KILL {_WITHIN_S} sh -c '
    file=$1; trap "rm -f -- \\"$file\\"" EXIT
    : >"$file" && stat -c "owner=%u" -- "$file"
  ' file "$path/$name" 2>&1)
  echo "@ $path $? $(printf %s "$said" | tr '\\n' ' ')"
done
"""


def find_root_squash(context: Context) -> Finding:
    """Create a file as root on one node of each group, at the top of each squashed folder."""
    found = mounts(context)
    folders = [f for f in found.folders if f.export.root_squash and not f.export.read_only]
    if not folders:
        return Finding(Status.SKIP, "no writable export of the site squashes root")
    tally, refused, asked = Tally(), [], []
    for node in _sample(context, folders):
        paths = [folder.path for folder in folders if node in folder.hosts]
        script = ["sh", "-c", _SCRIPT, "squash", f".{context.core.job_name}-root-{node}", *paths]
        argv = ["sh", "-c", _AS_ROOT, "as-root", *script]
        within = _WITHIN_S * (len(paths) + 1)
        try:
            answer = context.admin(context.site.hosts[node], argv, f"root-{node}", within)
        except UnreachableError as error:
            refused.append(f"cannot reach {error}")
            continue
        if not re.search("^root$", answer.stdout, re.MULTILINE):
            refused.append(f"{node}: {answer.complaint}")
            continue
        asked.append(node)
        judge_squash(node, paths, read_squash(answer.stdout), tally)
    if not asked and refused:
        return Finding(Status.SKIP, f"no root on a node: {'; '.join(refused)}")
    tally.unknown += [*refused, *left_out(found)]
    if not asked and not tally.unknown:
        return Finding(Status.SKIP, "no compute node mounts such a folder from another host")
    return tally.finding(asked)


def _sample(context: Context, folders: Sequence[Folder]) -> list[str]:
    """Return the first node of each group that has mounted a folder from another host."""
    clients = {h for folder in folders for h in folder.hosts if h != folder.server}
    first: dict[str, str] = {}
    for target in context.cluster.targets:
        if target.name in clients:
            first.setdefault(target.group, target.name)
    return list(first.values())[:_AT_MOST]


def read_squash(text: str) -> dict[str, tuple[int, str]]:
    """Read the script's lines: by folder how it ended, and what was said."""
    found = re.findall(r"^@ (\S+) (\d+) ?(.*)$", text, re.MULTILINE)
    return {path: (int(rc), said.strip()) for path, rc, said in found}


def judge_squash(
    node: str, paths: Sequence[str], said: Mapping[str, tuple[int, str]], tally: Tally
) -> None:
    """Hold each folder against root_squash: denied or another's file, never root's."""
    for path in paths:
        rc, words = said.get(path, (-1, "not tried"))
        owner = re.search(r"owner=(\d+)", words)
        if owner and owner[1] == "0":
            tally.wrong.append(
                f"{node}: root creates files of root on {path}, which should squash root"
            )
        elif not owner and "Permission denied" not in words:
            tally.unknown.append(f"{node}: root on {path}: {words or f'exit code {rc}'}")
