"""What a manifest says of an image."""

import hashlib
from pathlib import Path

from hpcsite.image import manifest
from hpcsite.image.kinds import Kind
from hpcsite.image.recipe import Recipe

RECIPE = Recipe("trixie", "amd64", (), (), ())
KIND = Kind(("slurm_compute", "rdma"), builds=False, variables="{}")


def test_a_manifest_names_packages_and_files_and_comes_last(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "vmlinuz").write_bytes(b"kernel")
    (tmp_path / "kernel-release").write_text("6.12.1-amd64\n")
    (tmp_path / "packages").write_text("bash 5.2-1 amd64\ntzdata 2025b-1 all\n")
    manifest.write(RECIPE, KIND, ["gpu02", "gpu01"], tmp_path, built=0)

    found = manifest.read(tmp_path / "manifest.json")
    assert found.schema_version == 1
    assert found.kernel == "6.12.1-amd64"
    assert found.features == ("slurm_compute", "rdma")
    assert found.built == "1970-01-01T00:00:00Z"
    assert found.digest == KIND.digest(RECIPE)
    assert [(each.name, each.version, each.architecture) for each in found.packages] == [
        ("bash", "5.2-1", "amd64"),
        ("tzdata", "2025b-1", "all"),
    ]
    assert found.artifacts["vmlinuz"].sha256 == hashlib.sha256(b"kernel").hexdigest()
    assert found.artifacts["vmlinuz"].bytes == 6
    assert set(found.artifacts) == {"vmlinuz"}
    assert {path.name for path in tmp_path.iterdir()} == {"root", "vmlinuz", "manifest.json"}
