from __future__ import annotations

from pathlib import Path

import pytest

from asap_core.errors import InputFileError
from asap_core.retargeting.bench import bench
from asap_core.retargeting.settings import RetargetSettings


@pytest.mark.slow
def test_every_published_clip_meets_the_yardstick(shared_dir: Path) -> None:
    score = bench(shared_dir, RetargetSettings())
    assert score["clips"] == 39
    assert score["limit_violations"] == 0
    assert score["link_error_mm"] <= 25.5
    assert score["skate_mm_per_frame"] <= 0.8
    assert score["sole_height_mm"] <= 2.5
    assert score["penetration_mm"] <= 2
    assert score["jerk"] <= 77


def test_published_retargets_score_as_they_were_measured(shared_dir: Path) -> None:
    """26.9 mm, 2.87 mm/frame, 74 mm, 6.1 mm and 47 rad/s³ over all 51 clips, of which these are 39."""
    score = bench(shared_dir, RetargetSettings(iterations=1, coarse_iterations=1))
    assert score["published_link_error_lifted_mm"] == pytest.approx(26.9, rel=0.02)
    assert score["published_skate_mm_per_frame"] == pytest.approx(2.87, rel=0.02)
    assert score["published_sole_height_mm"] == pytest.approx(74, rel=0.03)
    assert score["published_penetration_mm"] == pytest.approx(6.1, rel=0.04)
    assert score["published_jerk"] == pytest.approx(47, rel=0.04)


def test_folder_without_clips_is_named(tmp_path: Path, shared_dir: Path) -> None:
    with pytest.raises(InputFileError, match=r"off_g1shape\.npy: cannot be read"):
        bench(tmp_path, RetargetSettings())
    (tmp_path / "prototypes").symlink_to(shared_dir / "prototypes")
    with pytest.raises(InputFileError, match="smpl: found no npz clip"):
        bench(tmp_path, RetargetSettings())
