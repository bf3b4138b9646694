"""Readers of motion capture exports: poses and markers as written, clocks by frame number, lost frames as NaN."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from log_fixtures import BODY, MARKERS, NUM_ROWS, file_log_fixtures, make_run

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.readers import read_log
from asap_core.rollouts.ingest.readers.motive import capture_start
from asap_core.rollouts.ingest.streams import Stream
from asap_core.rotations import quat_to_matrix

RUN = make_run()
EXACT = {"rtol": 0, "atol": 1e-9}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return file_log_fixtures(tmp_path_factory.mktemp("logs"))


def pose_of(path: Path) -> Stream:
    (stream,) = read_log(path).of_kind("pose")
    return stream


def markers_of(path: Path) -> Stream:
    (stream,) = read_log(path).of_kind("markers")
    return stream


def seen_rows(lost: int) -> np.ndarray:
    return np.delete(np.arange(NUM_ROWS), lost)


def test_motive_pose_is_as_written_and_lost_where_empty(logs: dict[str, Path]) -> None:
    pose, rows = pose_of(logs["motive_csv"]), seen_rows(7)
    assert pose.name == BODY
    np.testing.assert_allclose(pose.values["pos"][rows], 1000 * RUN.root_pos[rows], **EXACT)
    np.testing.assert_allclose(pose.values["quat"][rows][:, [3, 0, 1, 2]], RUN.root_quat[rows], **EXACT)
    assert pose.declared["quat_order"] == "xyzw"
    assert pose.declared["length_unit"] == "mm"
    assert "up_axis" not in pose.declared
    assert np.isnan(pose.values["pos"][7]).all()
    np.testing.assert_array_equal(np.flatnonzero(pose.values["tracking_valid"] == 0), [7])


def test_motive_time_is_frame_by_rate_not_the_rounded_column(logs: dict[str, Path]) -> None:
    pose = pose_of(logs["motive_csv"])
    assert pose.sequence is not None
    assert pose.source_time is not None
    np.testing.assert_array_equal(pose.sequence, 5 + np.arange(NUM_ROWS))
    np.testing.assert_allclose(pose.source_time, (5 + np.arange(NUM_ROWS)) / 120, rtol=0, atol=1e-15)


def test_motive_time_column_decides_where_frames_do_not_fit_the_rate(logs: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "take.csv"
    path.write_text(logs["motive_csv"].read_text("utf-8-sig").replace("Export Frame Rate,120", "Export Frame Rate,60"))
    log = read_log(path)
    assert any("its Time column is used" in note for note in log.notes)
    (pose,) = log.of_kind("pose")
    assert pose.source_time is not None
    assert np.diff(pose.source_time).mean() == pytest.approx(1 / 120, rel=1e-2)


def test_motive_euler_angles_are_the_same_rotation(logs: dict[str, Path]) -> None:
    pose, rows = pose_of(logs["motive_csv_euler"]), seen_rows(7)
    assert pose.declared["quat_order"] == "wxyz"
    turned = quat_to_matrix(pose.values["quat"][rows])
    np.testing.assert_allclose(turned, quat_to_matrix(RUN.root_quat[rows]), **EXACT)


def test_motive_markers_and_capture_time(logs: dict[str, Path]) -> None:
    log = read_log(logs["motive_csv"])
    (markers,) = log.of_kind("markers")
    assert markers.labels == (f"{BODY}:{MARKERS[0]}", f"{BODY}:{MARKERS[1]}", "Unlabeled 1189")
    np.testing.assert_allclose(markers.values["marker_pos"][:, :2], 1000 * RUN.markers, **EXACT)
    assert log.metadata["capture_start_local"] == "2023-03-29T18:23:40.520"
    assert "not read: columns Mean Marker Error" in log.notes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-03-29 06.23.40.520 下午", "2023-03-29T18:23:40.520"),
        ("2023-03-29 12.05.00.001 AM", "2023-03-29T00:05:00.001"),
        ("2023-03-29 12.05.00.001 PM", "2023-03-29T12:05:00.001"),
        ("2023-03-29 18.23.40.520", "2023-03-29T18:23:40.520"),
        ("29 Mar 2023", None),
        ("2023-03-29 06.23.40.520 kväll", None),
    ],
)
def test_capture_start_in_several_languages(text: str, expected: str | None) -> None:
    assert capture_start(text) == expected


def test_optitrack_v1(logs: dict[str, Path]) -> None:
    pose, markers = pose_of(logs["optitrack_v1"]), markers_of(logs["optitrack_v1"])
    np.testing.assert_allclose(pose.values["pos"], RUN.root_pos, **EXACT)
    np.testing.assert_allclose(pose.values["quat"][:, [3, 0, 1, 2]], RUN.root_quat, **EXACT)
    assert markers.labels == MARKERS
    np.testing.assert_allclose(markers.values["marker_pos"][:, 0], RUN.markers[:, 0], **EXACT)
    assert np.isnan(markers.values["marker_pos"][3, 1]).all()
    assert np.isfinite(markers.values["marker_pos"][4:, 1]).all()


def test_left_handed_optitrack_v1_is_refused(logs: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "left.csv"
    path.write_text(logs["optitrack_v1"].read_text().replace("righthanded", "lefthanded"))
    with pytest.raises(InputFileError, match="left-handed axes"):
        read_log(path)


def test_vicon_sections(logs: dict[str, Path]) -> None:
    log = read_log(logs["vicon_csv"])
    (pose,), (markers,) = log.of_kind("pose"), log.of_kind("markers")
    assert pose.name == f"g1:{BODY}"
    np.testing.assert_allclose(quat_to_matrix(pose.values["quat"]), quat_to_matrix(RUN.root_quat), **EXACT)
    np.testing.assert_allclose(pose.values["pos"], 1000 * RUN.root_pos, **EXACT)
    rows = seen_rows(4)
    np.testing.assert_allclose(markers.values["marker_pos"][rows], 1000 * RUN.markers[rows], **EXACT)
    assert np.isnan(markers.values["marker_pos"][4, 0]).all()
    assert np.isfinite(markers.values["marker_pos"][4, 1]).all()
    assert log.notes == ("section 'Devices' not read",)
    np.testing.assert_allclose(markers.source_time, np.arange(NUM_ROWS) / 100, **EXACT)


def test_vicon_tracker_quaternions(logs: dict[str, Path]) -> None:
    pose = pose_of(logs["vicon_csv_tracker"])
    np.testing.assert_allclose(pose.values["quat"][:, [3, 0, 1, 2]], RUN.root_quat, **EXACT)
    assert pose.declared["quat_order"] == "xyzw"


def test_trc_with_cut_tails(logs: dict[str, Path]) -> None:
    markers, rows = markers_of(logs["trc"]), seen_rows(6)
    assert markers.labels == MARKERS
    np.testing.assert_allclose(markers.values["marker_pos"][rows], 1000 * RUN.markers[rows], **EXACT)
    assert np.isnan(markers.values["marker_pos"][6, 1]).all()
    np.testing.assert_allclose(markers.source_time, np.arange(NUM_ROWS) / 100, **EXACT)


@pytest.mark.parametrize("layout", ["trc", "qualisys_tsv", "motive_csv", "optitrack_v1"])
def test_exports_cut_in_a_line_keep_the_frames_before_and_say_so(
    logs: dict[str, Path], tmp_path: Path, layout: str
) -> None:
    path = tmp_path / logs[layout].name
    whole = logs[layout].read_bytes()
    path.write_bytes(whole[: whole.rindex(b"\n", 0, len(whole) * 3 // 4) + 9])
    log, full = read_log(path), read_log(logs[layout])
    for stream, before in zip(log.streams, full.streams, strict=True):
        count = stream.num_samples
        assert 10 < count < NUM_ROWS
        for name, values in stream.values.items():
            np.testing.assert_array_equal(values, before.values[name][:count])
    assert any("no line end" in note for note in log.notes)


def test_qualisys_markers_at_the_origin_are_lost(logs: dict[str, Path]) -> None:
    markers, rows = markers_of(logs["qualisys_tsv"]), seen_rows(9)
    assert markers.labels == MARKERS
    np.testing.assert_allclose(markers.values["marker_pos"][rows], 1000 * RUN.markers[rows], **EXACT)
    assert np.isnan(markers.values["marker_pos"][9]).all()


def test_qualisys_bodies_by_their_matrix(logs: dict[str, Path]) -> None:
    pose, rows = pose_of(logs["qualisys_tsv_6d"]), seen_rows(9)
    np.testing.assert_allclose(quat_to_matrix(pose.values["quat"][rows]), quat_to_matrix(RUN.root_quat[rows]), **EXACT)
    np.testing.assert_allclose(pose.values["pos"][rows], 1000 * RUN.root_pos[rows], **EXACT)
    np.testing.assert_array_equal(np.flatnonzero(pose.values["tracking_valid"] == 0), [9])


def test_qualisys_angles_that_contradict_the_matrix_are_said(logs: dict[str, Path], tmp_path: Path) -> None:
    lines = logs["qualisys_tsv_6d"].read_text().splitlines()
    cells = lines[20].split("\t")
    cells[5] = str(float(cells[5]) + 20)
    lines[20] = "\t".join(cells)
    path = tmp_path / "walk.tsv"
    path.write_text("\n".join(lines) + "\n")
    assert any("angles do not give Rot[0..8]" in note for note in read_log(path).notes)
    assert not any("angles" in note for note in read_log(logs["qualisys_tsv_6d"]).notes)


def test_c3d_keeps_its_first_frame_and_occlusions(logs: dict[str, Path]) -> None:
    markers = markers_of(logs["c3d"])
    assert markers.labels == MARKERS
    assert markers.declared["length_unit"] == "mm"
    np.testing.assert_allclose(markers.source_time, (24 + np.arange(NUM_ROWS)) / 100, **EXACT)
    rows = seen_rows(2)
    np.testing.assert_allclose(markers.values["marker_pos"][rows], 1000 * RUN.markers[rows], rtol=1e-6, atol=0)
    assert np.isnan(markers.values["marker_pos"][2, 0]).all()
    assert np.isfinite(markers.values["marker_pos"][2, 1]).all()


def test_cut_c3d_is_refused(logs: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "cut.c3d"
    whole = logs["c3d"].read_bytes()
    path.write_bytes(whole[: len(whole) - 2048])
    with pytest.raises(InputFileError, match="cut or damaged: 60 frames of 2 markers"):
        read_log(path)
