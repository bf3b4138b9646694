"""Logs of every file layout that ingest reads, written from one small made-up robot run with known values."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.rotations import quat_to_matrix, quat_to_rotvec

NUM_ROWS, NUM_JOINTS, RATE = 60, 29, 50.0
JOINT_NAMES = tuple(
    f"{side}_{part}_joint" for side in ("left", "right") for part in ("hip_pitch", "knee", "ankle_roll")
)
"""Of the layouts that name their joints: the run's first six."""
BODY, MARKERS = "pelvis", ("front", "back")
START_UNIX = 1764460000.0


@dataclass(frozen=True)
class Run:
    """N rows at 50 Hz: angles of 29 joints, an upright base that turns about all axes, two markers on it."""

    time: NDArray[np.float64]
    joint_pos: NDArray[np.float64]
    joint_vel: NDArray[np.float64]
    joint_torque: NDArray[np.float64]
    joint_target: NDArray[np.float64]
    action: NDArray[np.float64]
    root_pos: NDArray[np.float64]
    """m, z up."""
    root_quat: NDArray[np.float64]
    """wxyz."""
    gyro: NDArray[np.float64]
    acc: NDArray[np.float64]
    markers: NDArray[np.float64]
    """(N, 2, 3) m."""


def make_run(seed: int = 0) -> Run:
    """The run; all numbers are multiples of 1e-6, as text formats write them."""
    rng = np.random.default_rng(seed)
    time = np.arange(NUM_ROWS) / RATE
    phase = 2 * np.pi * time[:, None] + np.arange(NUM_JOINTS)
    angles = np.stack([0.2 * np.sin(time * 5), 0.3 * np.cos(time * 4), 0.5 * time], axis=1)
    half = np.linalg.norm(angles, axis=1, keepdims=True) / 2
    quat = np.concatenate([np.cos(half), angles / (2 * half) * np.sin(half)], axis=1)
    root = np.stack([0.3 * time, 0.1 * np.sin(time), 0.78 + 0.01 * np.cos(time * 9)], axis=1)
    offsets = np.array([[0.1, 0.0, 0.05], [-0.1, 0.02, 0.05]])
    markers = root[:, None] + np.einsum("nij,mj->nmi", quat_to_matrix(quat), offsets)
    rounded = {
        "joint_pos": 0.3 * np.sin(phase),
        "joint_vel": 0.3 * 2 * np.pi * np.cos(phase),
        "joint_torque": rng.normal(0, 3, (NUM_ROWS, NUM_JOINTS)),
        "joint_target": 0.3 * np.sin(phase) + 0.02,
        "action": rng.normal(0, 1, (NUM_ROWS, NUM_JOINTS)),
        "root_pos": root,
        "gyro": rng.normal(0, 0.3, (NUM_ROWS, 3)),
        "acc": rng.normal(0, 0.3, (NUM_ROWS, 3)) + np.array([0, 0, 9.81]),
        "markers": markers,
    }
    return Run(time=time, root_quat=quat, **{name: np.round(values, 6) for name, values in rounded.items()})


def file_log_fixtures(folder: Path) -> dict[str, Path]:
    """Write every layout under `folder`.

    Returns:
        Layout (a reader's id, with a suffix where it has several) to the file or folder.
    """
    run = make_run()
    paths = {}
    for name, (file, write) in WRITERS.items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, run)
        paths[name] = path
    return paths


def _asap_npz(path: Path, run: Run, mocap: bool = True) -> None:
    n = NUM_ROWS
    arrays = {
        "time": START_UNIX + run.time,
        "joint_pos": run.joint_pos,
        "joint_vel": run.joint_vel,
        "tau_est": run.joint_torque,
        "joint_pos_cmd": run.joint_target,
        "joint_vel_cmd": np.zeros((n, NUM_JOINTS)),
        "kp": np.full((n, NUM_JOINTS), 100.0),
        "kd": np.full((n, NUM_JOINTS), 2.0),
        "tau_cmd": np.zeros((n, NUM_JOINTS)),
        "IMU_quaternion": run.root_quat,
        "IMU_gyro": run.gyro,
        "IMU_acc": run.acc,
    }
    if mocap:
        arrays |= {"pos": run.root_pos, "quat": run.root_quat, "lin_vel": run.gyro, "ang_vel": run.gyro}
    np.savez(path, **arrays)


def _asap_pkl(path: Path, run: Run) -> None:
    clips = {}
    for name, rows in (("motion0", slice(0, 20)), ("motion1", slice(20, 60))):
        clip: dict[str, Any] = {"dof": run.joint_pos[rows, :23], "action": run.action[rows, :23], "fps": 50}
        clip |= {"root_trans_offset": run.root_pos[rows], "root_rot": run.root_quat[rows][:, [1, 2, 3, 0]]}
        clip |= {"pose_aa": np.zeros((len(clip["dof"]), 27, 3)), "terminate": np.zeros(len(clip["dof"]))}
        clip["terminate"][10] = 1
        clips[name] = clip
    path.write_bytes(pickle.dumps(clips, protocol=3))


def _table(path: Path, columns: dict[str, NDArray[Any]], separator: str = ",", encoding: str = "utf-8") -> None:
    rows = [separator.join(columns)]
    rows += [separator.join(str(value) for value in row) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(rows) + "\n", encoding=encoding)


def _numbered(name: str, values: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    return {f"{name}_{i}": values[:, i] for i in range(values.shape[1])}


def _csv_deploy(path: Path, run: Run) -> None:
    six = slice(0, 6)
    columns = {"t_ms": 1000 * run.time} | _numbered("actual_q", run.joint_pos[:, six])
    columns |= _numbered("actual_dq", run.joint_vel[:, six]) | _numbered("target_q", run.joint_target[:, six])
    columns |= _numbered("kp", np.full((NUM_ROWS, 6), 90.0)) | _numbered("kd", np.full((NUM_ROWS, 6), 2.0))
    columns |= {f"ang_vel_{axis}": run.gyro[:, i] for i, axis in enumerate("xyz")}
    columns |= {f"gravity_ori_{axis}": run.acc[:, i] for i, axis in enumerate("xyz")}
    _table(path, columns)


def _csv_cpp(path: Path, run: Run) -> None:
    six = slice(0, 6)
    columns: dict[str, NDArray[Any]] = {"time": run.time, "unix_time": np.round(START_UNIX + run.time, 1)}
    columns |= {"wall_time": np.full(NUM_ROWS, "12:30:01.5")}
    columns |= _numbered("q_des", run.joint_target[:, six]) | _numbered("q", run.joint_pos[:, six])
    columns |= _numbered("dq", run.joint_vel[:, six]) | _numbered("tau", run.joint_torque[:, six])
    columns |= _numbered("temperatures", np.full((NUM_ROWS, 6), 41.0)) | _numbered("imu_acc", run.acc)
    columns |= _numbered("imu_rpy", run.gyro) | _numbered("ang_vel", run.gyro) | _numbered("position", run.root_pos)
    columns |= _numbered("foot_force", run.acc)
    _table(path, columns)


def _csv_comma(path: Path, run: Run) -> None:
    """Named joints, semicolons, decimal commas, UTF-16 with its mark, CRLF."""
    names = ["time", *(f"q_{name}" for name in JOINT_NAMES), *(f"q_des_{name}" for name in JOINT_NAMES)]
    values = np.concatenate([run.time[:, None], run.joint_pos[:, :6], run.joint_target[:, :6]], axis=1)
    rows = [";".join(names), *(";".join(str(v).replace(".", ",") for v in row) for row in values)]
    path.write_bytes("\r\n".join([*rows, ""]).encode("utf-16"))


def _csv_pendulum(path: Path, run: Run) -> None:
    one = {"position": run.joint_pos, "velocity": run.joint_vel, "torque": run.joint_torque}
    _table(path, {"time": run.time} | {name: values[:, 0] for name, values in one.items()}, encoding="utf-8-sig")


def _sage(path: Path, run: Run) -> None:
    path.mkdir()

    def lists(values: NDArray[np.float64]) -> list[str]:
        return [f'"{row.tolist()}"' for row in values[:, :6]]

    stamps = 1e5 * run.time + 5.017
    head = {"type": np.full(NUM_ROWS, "STATE_MOTOR"), "timestamp": stamps}
    state = {"positions": run.joint_pos, "velocities": run.joint_vel, "torques": run.joint_torque}
    _table(path / "state_motor.csv", head | {name: np.array(lists(values)) for name, values in state.items()})
    _table(path / "control.csv", head | {"positions": np.array(lists(run.joint_target))})
    (path / "event.csv").write_text("type,timestamp,event\nEVENT,0,CONTROL_MODE_ENABLE\nEVENT,5.017,MOTION_START\n")
    (path / "joint_list.txt").write_text("\n".join(JOINT_NAMES) + "\n")


def _pace(path: Path, run: Run) -> None:
    import torch

    arrays = {"time": run.time, "dof_pos": run.joint_pos, "des_dof_pos": run.joint_target}
    torch.save({name: torch.from_numpy(values) for name, values in arrays.items()}, path)


def _bam(path: Path, run: Run) -> None:
    entries = [
        {"position": q, "speed": dq, "load": tau, "input_volts": 15.0, "temp": 31, "timestamp": t}
        | {"goal_position": goal, "torque_enable": True}
        for q, dq, tau, t, goal in zip(
            *(values[:, 0].tolist() for values in (run.joint_pos, run.joint_vel, run.joint_torque)),
            run.time.tolist(),
            run.joint_target[:, 0].tolist(),
            strict=True,
        )
    ]
    path.write_text(json.dumps({"mass": 0.8, "length": 0.1, "motor": "mx64", "entries": entries}))


def _lerobot(path: Path, run: Run, version: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names: Any = [f"{name}.pos" for name in JOINT_NAMES]
    feature = {"dtype": "float32", "shape": [6]}
    nested = {"motors": names} if version == "v2.1" else [names]
    features = {
        "observation.state": feature | {"names": nested},
        "action": feature | {"names": nested},
        "observation.images.top": {"dtype": "video", "shape": [480, 640, 3], "names": ["height", "width", "channels"]},
    }
    info = {"codebase_version": version, "fps": 50, "robot_type": "g1", "features": features}
    (path / "meta").mkdir(parents=True)
    (path / "meta" / "info.json").write_text(json.dumps(info))
    episode = np.repeat([0, 1], NUM_ROWS // 2)
    frame = np.tile(np.arange(NUM_ROWS // 2), 2)

    def table(rows: NDArray[np.intp]) -> Any:
        def column(values: NDArray[np.float64]) -> Any:
            return pa.FixedSizeListArray.from_arrays(values[rows, :6].astype(np.float32).reshape(-1), 6)

        columns = {"observation.state": column(run.joint_pos), "action": column(run.joint_target)}
        index = {"timestamp": (frame[rows] / RATE).astype(np.float32), "frame_index": frame[rows]}
        return pa.table(columns | index | {"episode_index": episode[rows], "index": rows, "task_index": 0 * rows})

    folder = path / "data" / "chunk-000"
    folder.mkdir(parents=True)
    if version == "v3.0":
        pq.write_table(table(np.arange(NUM_ROWS)), folder / "file-000.parquet")
        return
    for number in (0, 1):
        pq.write_table(table(np.flatnonzero(episode == number)), folder / f"episode_{number:06d}.parquet")


def _hdf5(path: Path, run: Run) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for name, rows in (("episode_0", slice(0, 30)), ("episode_1", slice(30, 60))):
            group = file.create_group(name)
            group.attrs["joint_names"] = list(JOINT_NAMES)
            group["time"] = run.time[rows]
            group["dof_pos"], group["dof_vel"] = run.joint_pos[rows, :6], run.joint_vel[rows, :6]
            group["dof_pos_target"] = run.joint_target[rows, :6]
            group["imu_gyro"], group["camera"] = run.gyro[rows], np.zeros((30, 4, 4))


def _hdf5_holomotion(path: Path, run: Run) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.attrs["fps"] = RATE
        file["ref_root_pos"], file["ref_root_rot"] = run.root_pos, run.root_quat[:, [1, 2, 3, 0]]
        file.create_dataset("ref_dof_pos", data=run.joint_pos, compression="gzip")


def _matlab_v73(path: Path, run: Run) -> None:
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in (("t", run.time[:, None]), ("log/q", run.joint_pos), ("log/dq", run.joint_vel)):
            file[name] = values.T
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
    content = bytearray(path.read_bytes())
    content[:116] = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Nov 30".ljust(116)
    content[124:128] = b"\x00\x02IM"
    path.write_bytes(bytes(content))


def _matlab_v5(path: Path, run: Run) -> None:
    from scipy.io import savemat

    savemat(path, {"time": run.time, "q": run.joint_pos, "log": {"tau": run.joint_torque, "note": "walk"}})


def _cells(rows: Iterable[Iterable[Any]], separator: str = ",") -> str:
    return "".join(separator.join(str(cell) for cell in row) + "\n" for row in rows)


def _lost(text_rows: list[list[Any]], row: int, columns: slice) -> None:
    """Empty the cells of a lost frame."""
    text_rows[row][columns] = [""] * len(text_rows[row][columns])


def _motive(path: Path, run: Run, euler: bool = False) -> None:
    """Millimetres, 120 Hz frames from 5 on, times rounded to 1 ms; the body is lost in row 7."""
    from scipy.spatial.transform import Rotation

    kind = "XYZ" if euler else "Quaternion"
    header = "Format Version,1.23,Take Name,walk,Capture Frame Rate,120.000000,Export Frame Rate,120.000000,"
    header += "Capture Start Time,2023-03-29 06.23.40.520 下午,Total Frames in Take,65,Total Exported Frames,60,"
    header += f"Rotation Type,{kind},Length Units,Millimeters,Coordinate Space,Global\n\n"
    turn = ["X", "Y", "Z"] if euler else ["X", "Y", "Z", "W"]
    types = ["Rigid Body"] * (len(turn) + 4) + ["Rigid Body Marker"] * 6 + ["Marker"] * 3
    names = [BODY] * (len(turn) + 4) + [f"{BODY}:{m}" for m in MARKERS for _ in range(3)] + ["Unlabeled 1189"] * 3
    kinds = ["Rotation"] * len(turn) + ["Position"] * 3 + ["Mean Marker Error"] + ["Position"] * 9
    axes = [*turn, "X", "Y", "Z", "", *"XYZXYZXYZ"]
    orientation = Rotation.from_quat(run.root_quat, scalar_first=True)
    angles = orientation.as_euler("XYZ", degrees=True) if euler else run.root_quat[:, [1, 2, 3, 0]]
    points = 1000 * np.concatenate([run.markers.reshape(NUM_ROWS, 6), run.root_pos], axis=1)
    rows = [
        [5 + k, f"{round((5 + k) / 120, 3):.6f}", *angles[k], *(1000 * run.root_pos[k]), 0.2, *points[k]]
        for k in range(NUM_ROWS)
    ]
    _lost(rows, 7, slice(2, len(turn) + 6))
    labels = [["", "Type", *types], ["", "Name", *names], ["", "ID", *names], ["", "", *kinds]]
    path.write_text(header + _cells([*labels, ["Frame", "Time (Seconds)", *axes], *rows]), encoding="utf-8-sig")


def _motive_v1(path: Path, run: Run) -> None:
    """The marker `back` is not listed in frame 3."""
    lines = ['comment,"OptiTrack Export Data"', "righthanded", "info,version,1.1", "info,framecount,60"]
    lines.append(f'rigidbody,"{BODY}",1,2')
    for k in range(NUM_ROWS):
        body = [1, *run.root_pos[k], *run.root_quat[k][[1, 2, 3, 0]], 0, 0, 0]
        seen = [0] if k == 3 else [0, 1]
        marks = [cell for m in seen for cell in (*run.markers[k, m], m + 1, MARKERS[m])]
        lines.append(",".join(map(str, ["frame", k, f"{k / 100:.8f}", 1, *body, len(seen), *marks])))
    path.write_text("\n".join(lines) + "\n")


def _vicon(path: Path, run: Run) -> None:
    """Devices (not read), Segments with rotation vectors in degrees, Trajectories; `front` is lost in row 4."""
    frame = [[k + 1, 0] for k in range(NUM_ROWS)]
    turns = np.rad2deg(quat_to_rotvec(run.root_quat))
    segments = [[*f, *turns[k], *(1000 * run.root_pos[k])] for k, f in enumerate(frame)]
    points = [[*f, *(1000 * run.markers[k].reshape(-1))] for k, f in enumerate(frame)]
    _lost(points, 4, slice(2, 5))
    head = ["Frame", "Sub Frame"]
    rows: list[list[Any]] = [["Devices"], ["1000"], ["", "", "Plate - Force"], [*head, "Fx", "Fy", "Fz"]]
    rows += [["", "", "N", "N", "N"], [1, 0, 1.0, 2.0, 3.0], []]
    rows += [["Segments"], ["100"], ["", "", f"g1:{BODY}"], [*head, "RX", "RY", "RZ", "TX", "TY", "TZ"]]
    rows += [["", "", "deg", "deg", "deg", "mm", "mm", "mm"], *segments, []]
    rows += [["Trajectories"], ["100"], ["", "", MARKERS[0], "", "", MARKERS[1]], [*head, *"XYZXYZ"]]
    rows += [["", "", *["mm"] * 6], *points]
    path.write_text(_cells(rows).replace("\n", "\r\n"), newline="")


def _vicon_tracker(path: Path, run: Run) -> None:
    rows = [[k + 1, 0, *run.root_quat[k][[1, 2, 3, 0]], *(1000 * run.root_pos[k])] for k in range(NUM_ROWS)]
    head = [["Objects"], ["100"], ["", "", f"Global Angle {BODY}"]]
    head += [["Frame", "Sub Frame", "RX", "RY", "RZ", "RW", "TX", "TY", "TZ"], ["", "", "", "", "", "", *["mm"] * 3]]
    path.write_text(_cells([*head, *rows]))


def _trc(path: Path, run: Run) -> None:
    """`back` is lost in row 6, and its tail of empty cells cut off."""
    rows = [[k + 1, f"{k / 100:.5f}", *(1000 * run.markers[k].reshape(-1))] for k in range(NUM_ROWS)]
    rows[6] = rows[6][:5]
    head = [["PathFileType", 4, "(X/Y/Z)", "walk.trc"]]
    head += [["DataRate", "CameraRate", "NumFrames", "NumMarkers", "Units", "OrigDataRate"]]
    head += [[100, 100, NUM_ROWS, 2, "mm", 100], ["Frame#", "Time", MARKERS[0], "", "", MARKERS[1], "", ""]]
    head += [["", "", "X1", "Y1", "Z1", "X2", "Y2", "Z2"], []]
    path.write_text(_cells([*head, *rows], "\t"))


def _qualisys(path: Path, run: Run, bodies: bool = False) -> None:
    """Row 9 is lost: zeros."""
    from scipy.spatial.transform import Rotation

    head: list[list[Any]] = [["NO_OF_FRAMES", NUM_ROWS], ["NO_OF_CAMERAS", 8], ["FREQUENCY", 100]]
    head += [["TIME_STAMP", "2023-03-29, 18:23:40.520", 1234.5], ["DATA_INCLUDED", "6D" if bodies else "3D"]]
    if bodies:
        matrices = quat_to_matrix(run.root_quat)
        angles = Rotation.from_matrix(matrices).as_euler("XYZ", degrees=True)
        by_columns = matrices.transpose(0, 2, 1).reshape(NUM_ROWS, 9)
        data = np.concatenate([1000 * run.root_pos, angles, np.full((NUM_ROWS, 1), 0.3), by_columns], axis=1)
        titles = ["Frame", "Time", "X", "Y", "Z", "Roll", "Pitch", "Yaw", "Residual", *(f"Rot[{i}]" for i in range(9))]
        head += [["BODY_NAMES", BODY], titles]
    else:
        data = 1000 * run.markers.reshape(NUM_ROWS, 6)
        titles = ["Frame", "Time", *(f"{name} {axis}" for name in MARKERS for axis in "XYZ")]
        head += [["MARKER_NAMES", *MARKERS], titles]
    data[9] = 0
    rows = [[k + 1, f"{k / 100:.5f}", *data[k]] for k in range(NUM_ROWS)]
    path.write_text(_cells([*head, *rows], "\t"))


def _c3d(path: Path, run: Run) -> None:
    """First frame 24 (counted from 0); `front` is lost in row 2."""
    import ezc3d

    file = ezc3d.c3d()
    file["header"]["points"]["first_frame"] = 24
    file["parameters"]["POINT"]["RATE"]["value"] = [100.0]
    file["parameters"]["POINT"]["LABELS"]["value"] = list(MARKERS)
    file["parameters"]["POINT"]["UNITS"]["value"] = ["mm"]
    points = np.ones((4, 2, NUM_ROWS))
    points[:3] = 1000 * run.markers.transpose(2, 1, 0)
    points[:3, 0, 2] = np.nan
    file["data"]["points"] = points
    file.write(str(path))


Writer = Callable[[Path, Run], None]
WRITERS: dict[str, tuple[str, Writer]] = {
    "asap_npz": ("motion_0.npz", _asap_npz),
    "asap_npz_no_mocap": ("motion_1.npz", lambda path, run: _asap_npz(path, run, mocap=False)),
    "asap_pkl": ("delta.pkl", _asap_pkl),
    "csv_deploy": ("deploy.csv", _csv_deploy),
    "csv_cpp": ("log.csv", _csv_cpp),
    "csv_comma": ("komma.csv", _csv_comma),
    "csv_pendulum": ("data_measured.csv", _csv_pendulum),
    "sage": ("walk", _sage),
    "pace": ("chirp_data.pt", _pace),
    "bam": ("motor.json", _bam),
    "lerobot_v21": ("set", lambda path, run: _lerobot(path, run, "v2.1")),
    "lerobot_v30": ("set", lambda path, run: _lerobot(path, run, "v3.0")),
    "hdf5": ("run.h5", _hdf5),
    "hdf5_holomotion": ("clip.hdf5", _hdf5_holomotion),
    "matlab_v73": ("run.mat", _matlab_v73),
    "matlab_v5": ("old.mat", _matlab_v5),
    "motive_csv": ("take.csv", _motive),
    "motive_csv_euler": ("euler.csv", lambda path, run: _motive(path, run, euler=True)),
    "optitrack_v1": ("arena.csv", _motive_v1),
    "vicon_csv": ("nexus.csv", _vicon),
    "vicon_csv_tracker": ("tracker.csv", _vicon_tracker),
    "trc": ("walk.trc", _trc),
    "qualisys_tsv": ("walk.tsv", _qualisys),
    "qualisys_tsv_6d": ("walk_6D.tsv", lambda path, run: _qualisys(path, run, bodies=True)),
    "c3d": ("walk.c3d", _c3d),
}
