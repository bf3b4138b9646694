"""Weights are those that their digests promise, or they are not used."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from asap_core.errors import InputFileError
from asap_core.reconstruction import weights
from asap_core.reconstruction.weights import WEIGHTS, fetch, read_weights


@pytest.mark.parametrize(("name", "target"), [("detector", "make video"), ("heavy", "make video-heavy")])
def test_missing_weights_name_the_target_that_fetches_them(tmp_path: Path, name: str, target: str) -> None:
    with pytest.raises(InputFileError, match=f"missing: the weights of the {name} network; `{target}` fetches them"):
        read_weights(name, tmp_path)


def test_other_bytes_are_refused(tmp_path: Path) -> None:
    (tmp_path / WEIGHTS["full"].file).write_bytes(b"no network")
    with pytest.raises(InputFileError, match=f"expected {WEIGHTS['full'].sha256}.*fetch it again: `make video`"):
        read_weights("full", tmp_path)


def test_what_a_wheel_holds_is_checked_before_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(scratch: Path) -> Path:
        wheel = scratch / "mediapipe.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(WEIGHTS["detector"].member, b"another network")
        return wheel

    monkeypatch.setattr(weights, "_pip_download", download)
    with pytest.raises(InputFileError, match="sha256"):
        fetch(tmp_path / "weights", heavy=False)
    assert list((tmp_path / "weights").iterdir()) == []


def test_weights_that_are_there_are_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files with the right digests; a download would fail the test."""
    import hashlib
    from dataclasses import replace

    content = b"a network"
    digest = hashlib.sha256(content).hexdigest()
    for name in ("detector", "full"):
        monkeypatch.setitem(WEIGHTS, name, replace(WEIGHTS[name], sha256=digest))
        (tmp_path / WEIGHTS[name].file).write_bytes(content)
    monkeypatch.setattr(weights, "_pip_download", lambda scratch: pytest.fail("fetched"))
    fetch(tmp_path, heavy=False)
    assert read_weights("full", tmp_path) == content
