from __future__ import annotations

from pathlib import Path

import pytest

from asap_core.errors import InputFileError
from asap_core.retargeting.bench import bench
from asap_core.retargeting.settings import RetargetSettings


def test_published_clips_come_out_better_than_published(shared_dir: Path) -> None:
    score = bench(shared_dir, RetargetSettings(), every=6)
    assert score["clips"] == 7
    assert score["limit_violations"] == 0
    assert score["link_error_mm"] < 25
    assert score["skate_mm_per_frame"] < 0.5 * score["published_skate_mm_per_frame"]
    assert score["sole_height_mm"] < 0.2 * score["published_sole_height_mm"]


def test_folder_without_clips_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="smpl: found no npz clip"):
        bench(tmp_path, RetargetSettings())
