"""Reading mountinfo."""

from pathlib import Path

from hpcsite.image.mounts import Mount, parse_mountinfo

TEXT = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
31 22 0:26 / /srv/my\040lab rw - overlay overlay rw,lowerdir=/i,upperdir=/u,workdir=/w
32 22 0:27 / /sys/fs/cgroup rw,nosuid shared:4 master:2 - cgroup2 cgroup2 rw
broken line
"""


def test_points_are_unescaped_and_optional_fields_skipped() -> None:
    assert parse_mountinfo(TEXT) == [
        Mount(Path("/"), "ext4", "rw"),
        Mount(Path("/srv/my lab"), "overlay", "rw,lowerdir=/i,upperdir=/u,workdir=/w"),
        Mount(Path("/sys/fs/cgroup"), "cgroup2", "rw"),
    ]
