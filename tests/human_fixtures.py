"""One small valid file of each human motion format, made from the project's side step as its tool would write it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from scipy.spatial.transform import Rotation

from asap_core.motions.human import HumanMotion
from asap_core.motions.samples import FPS, SAMPLES, poses
from asap_core.motions.skeleton import (
    INDEX,
    JOINT_NAMES,
    PARENTS,
    PELVIS_REST,
    REST_TO_WORLD,
    body_offsets,
    place_joints,
    world_rotations,
)
from asap_core.motions.tables import Source
from asap_core.rotations import Array

FRAMES = 60
TRAM_GAP = (30, 36)
"""First and last video frame that the TRAM track lacks."""
BVH_NAMES = {
    "Pelvis": "Hips", "Torso": "Spine", "Spine": "Spine1", "Chest": "Spine2", "Neck": "Neck", "Head": "Head",
    **{f"{s}_{a}": f"{word}{b}" for s, word in (("L", "Left"), ("R", "Right")) for a, b in (
        ("Hip", "UpLeg"), ("Knee", "Leg"), ("Ankle", "Foot"), ("Toe", "Toe"), ("Thorax", "Shoulder"),
        ("Shoulder", "Arm"), ("Elbow", "ForeArm"), ("Wrist", "Hand"))},
}  # fmt: skip
"""LAFAN1's names."""


def sample() -> HumanMotion:
    """Frames 20 to 79 of the side step: both feet, a step, travel to the left."""
    rotations, pelvis = poses(SAMPLES["side_step"]())
    part = slice(20, 20 + FRAMES)
    source = Source("side_step", "0" * 64, "test")
    return HumanMotion("side_step", FPS, rotations[part].reshape(-1, 24, 3), pelvis[part], body_offsets(), source)


def human_fixtures(folder: Path) -> dict[str, Path]:
    """Write a file of every format into `folder`; format id → path."""
    motion = sample()
    writers = {
        "asap_smpl": ("clip.npz", write_asap_smpl),
        "amass_smplh": ("clip_poses.npz", write_amass_smplh),
        "amass_smplx": ("clip_stageii.npz", write_amass_smplx),
        "gvhmr": ("hmr4d_results.pt", write_gvhmr),
        "wham": ("wham_output.pkl", write_wham),
        "tram": ("hps_track_0.npy", write_tram),
        "bvh": ("clip.bvh", write_bvh),
        "human_parquet": ("clip.parquet", lambda path, record: record.save(path)),
    }
    paths = {}
    for name, (file_name, write) in writers.items():
        paths[name] = folder / name / file_name
        paths[name].parent.mkdir(parents=True, exist_ok=True)
        write(paths[name], motion)
    return paths


def turned_root(motion: HumanMotion, turn: Array) -> Array:
    """Root rotation vectors (T, 3) after `turn` (3, 3) or (T, 3, 3)."""
    return (Rotation.from_matrix(turn) * Rotation.from_rotvec(motion.joint_rotations[:, 0])).as_rotvec()


def y_up(motion: HumanMotion) -> tuple[Array, Array]:
    """Rotation vectors (T, 24, 3) and pelvis (T, 3) of the same motion in a world with y up."""
    rotations = motion.joint_rotations.copy()
    rotations[:, 0] = turned_root(motion, REST_TO_WORLD.T)
    return rotations, motion.root_translation @ REST_TO_WORLD


def write_asap_smpl(path: Path, motion: HumanMotion, **change: Any) -> None:
    """`poses` (T, 72) with ASAP's own fields and types."""
    fields: dict[str, Any] = {
        "trans": motion.root_translation.astype(np.float32),
        "gender": np.array("neutral"),
        "mocap_framerate": np.array(30),
        "betas": np.zeros(16),
        "poses": motion.joint_rotations.reshape(-1, 72).astype(np.float32),
    }
    np.savez(path, **(fields | change))


def write_amass_smplh(path: Path, motion: HumanMotion) -> None:
    """`poses` (T, 156): 22 body joints, then 30 finger joints."""
    body = np.zeros((motion.num_frames, 156))
    body[:, :66] = motion.joint_rotations[:, :22].reshape(-1, 66)
    np.savez(
        path,
        poses=body,
        trans=motion.root_translation,
        betas=np.linspace(-1, 1, 16),
        dmpls=np.zeros((motion.num_frames, 8)),
        gender="female",
        mocap_framerate=motion.fps,
    )


def write_amass_smplx(path: Path, motion: HumanMotion) -> None:
    """Root, body, hands, jaw and eyes apart."""
    frames = motion.num_frames
    np.savez(
        path,
        gender="male",
        surface_model_type="smplx",
        mocap_frame_rate=motion.fps,
        trans=motion.root_translation,
        betas=np.linspace(-1, 1, 16),
        root_orient=motion.joint_rotations[:, 0],
        pose_body=motion.joint_rotations[:, 1:22].reshape(frames, 63),
        pose_hand=np.zeros((frames, 90)),
        pose_jaw=np.zeros((frames, 3)),
        pose_eye=np.zeros((frames, 6)),
        poses=np.zeros((frames, 165)),
    )


def gvhmr_content(motion: HumanMotion) -> dict[str, Any]:
    """What GVHMR saves: the world with y up and, as if it were one, a camera pitched by 20°."""
    rotations, pelvis = y_up(motion)
    body = torch.tensor(rotations[:, 1:22].reshape(-1, 63)).float()
    betas = torch.tensor(np.tile(np.linspace(-0.5, 0.5, 10), (motion.num_frames, 1))).float()
    camera = camera_turn(20.0)
    world = {
        "body_pose": body,
        "global_orient": torch.tensor(rotations[:, 0]).float(),
        "transl": torch.tensor(pelvis - PELVIS_REST["smplx"]).float(),
        "betas": betas,
    }
    incam = world | {
        "global_orient": torch.tensor(turned_root(motion, camera)).float(),
        "transl": torch.tensor(motion.root_translation @ camera.T + [0, 0, 4.0] - PELVIS_REST["smplx"]).float(),
    }
    return {"smpl_params_global": world, "smpl_params_incam": incam, "K_fullimg": torch.eye(3).repeat(60, 1, 1)}


def camera_turn(pitch: float) -> Array:
    """Rotation (3, 3) from the z-up world into a camera (x right, y down, z ahead) looking along -x, pitched down."""
    level = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]])
    return Rotation.from_euler("x", pitch, degrees=True).as_matrix() @ level


def write_gvhmr(path: Path, motion: HumanMotion) -> None:
    """A torch archive of two dicts."""
    torch.save(gvhmr_content(motion), path)


def wham_content(motion: HumanMotion) -> dict[Any, dict[str, Any]]:
    """Two people: one seen throughout, one whose frames 10 to 14 are missing. The root is between the hips."""
    rotations, pelvis = y_up(motion)
    hips = body_offsets()[[INDEX["L_Hip"], INDEX["R_Hip"]]].mean(axis=0)
    root = pelvis + Rotation.from_rotvec(rotations[:, 0]).apply(hips)
    people: dict[Any, dict[str, Any]] = {}
    seen = np.r_[0:10, 15:FRAMES]
    for key, rows in ((np.int64(0), np.arange(FRAMES)), (np.int64(3), seen)):
        people[key] = {
            "pose": np.zeros((len(rows), 72), np.float32),
            "trans": np.zeros((len(rows), 3), np.float32),
            "pose_world": rotations[rows].reshape(-1, 72).astype(np.float32),
            "trans_world": root[rows].astype(np.float32),
            "betas": np.zeros((len(rows), 10), np.float32),
            "verts": np.zeros((len(rows), 7, 3), np.float32),
            "frame_ids": rows + 5,
        }
    return people


def write_wham(path: Path, motion: HumanMotion) -> None:
    """A joblib file of a dict with a default, as WHAM's demo keeps it."""
    from collections import defaultdict

    people: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
    people.update(wham_content(motion))
    joblib.dump(people, path)


def write_tram(path: Path, motion: HumanMotion) -> None:
    """A track in the frame of a moving camera, with a gap, and `camera.npy` one folder up as TRAM leaves it."""
    rotations, pelvis = y_up(motion)
    yaw = Rotation.from_euler("y", np.linspace(0, 40, FRAMES)[:, None], degrees=True)
    down = Rotation.from_euler("x", 180 - np.linspace(10, 25, FRAMES)[:, None], degrees=True)
    turns = (yaw * down).as_matrix()
    places = np.stack([np.linspace(0, 1, FRAMES), np.full(FRAMES, 1.5), np.linspace(4, 3, FRAMES)], axis=1)
    frame = np.r_[0 : TRAM_GAP[0], TRAM_GAP[1] + 1 : FRAMES]
    turn, place = turns[frame], places[frame]
    matrices = Rotation.from_rotvec(rotations[frame].reshape(-1, 3)).as_matrix().reshape(-1, 24, 3, 3)
    matrices[:, 0] = np.swapaxes(turn, 1, 2) @ matrices[:, 0]
    trans = np.einsum("tji,tj->ti", turn, pelvis[frame] - place) - PELVIS_REST["smpl"]
    track = {
        "pred_cam": torch.zeros(len(frame), 3),
        "pred_pose": torch.zeros(len(frame), 144),
        "pred_shape": torch.zeros(len(frame), 10),
        "pred_rotmat": torch.tensor(matrices),
        "pred_trans": torch.tensor(trans)[:, None],
        "frame": torch.tensor(frame),
    }
    np.save(path, np.array(track, dtype=object), allow_pickle=True)
    camera = {"world_cam_R": turns, "world_cam_T": places, "img_focal": np.float64(1000.0), "img_center": np.zeros(2)}
    np.save(path.parent / "camera.npy", np.array(camera, dtype=object), allow_pickle=True)


def lafan_frames() -> dict[str, Array]:
    """Joint frames (3, 3) of a zero pose like LAFAN1's: every bone along its joint's x axis, hinges about z."""
    up, forward, left, down, right = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, -1, 0], [-1, 0, 0]], dtype=float)
    trunk = np.stack([up, forward, left], axis=1)
    leg = np.stack([down, -forward, left], axis=1)
    foot = np.stack([forward, down, left], axis=1)
    arms = {"L": np.stack([left, forward, down], axis=1), "R": np.stack([right, forward, up], axis=1)}
    frames = dict.fromkeys(("Pelvis", "Torso", "Spine", "Chest", "Neck", "Head"), trunk)
    for side in "LR":
        frames |= {f"{side}_Hip": leg, f"{side}_Knee": leg, f"{side}_Ankle": foot, f"{side}_Toe": foot}
        frames |= {f"{side}_{name}": arms[side] for name in ("Thorax", "Shoulder", "Elbow", "Wrist")}
    return frames


def write_bvh(
    path: Path,
    motion: HumanMotion,
    names: dict[str, str] | None = None,
    frames: dict[str, Array] | None = None,
    order: str = "ZYX",
    frame_time: str = "0.033333",
) -> None:
    """In centimetres with y up. `frames`: turn of each joint's frame against SMPL's, LAFAN1's zero pose if absent."""
    names = names or BVH_NAMES
    frames = lafan_frames() if frames is None else frames
    rotations, pelvis = y_up(motion)
    local = Rotation.from_rotvec(rotations.reshape(-1, 3)).as_matrix().reshape(-1, 24, 3, 3)
    children = {name: [c for c in names if PARENTS[INDEX[c]] == INDEX[name]] for name in names}
    lines, columns = ["HIERARCHY"], [100 * pelvis]

    def open_joint(name: str, depth: int) -> None:
        pad, j = "\t" * depth, INDEX[name]
        above = np.eye(3) if j == 0 else frames[JOINT_NAMES[PARENTS[j]]]
        offset = 100 * above.T @ motion.skeleton[j]
        lines.append(f"{pad}{'JOINT' if j else 'ROOT'} {names[name]}")
        lines.append(f"{pad}{{\n{pad}\tOFFSET {' '.join(f'{v:.6f}' for v in offset)}")
        channels = " ".join(f"{axis}rotation" for axis in order)
        place = "" if j else "Xposition Yposition Zposition "
        lines.append(f"{pad}\tCHANNELS {3 if j else 6} {place}{channels}")
        turn = above.T @ local[:, j] @ frames[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # gimbal lock: the angles are still right
            columns.append(Rotation.from_matrix(turn).as_euler(order, degrees=True))
        for child in children[name]:
            open_joint(child, depth + 1)
        if not children[name]:
            lines.append(f"{pad}\tEnd Site\n{pad}\t{{\n{pad}\t\tOFFSET 1.0 0.0 0.0\n{pad}\t}}")
        lines.append(f"{pad}}}")

    open_joint("Pelvis", 0)
    values = np.concatenate(columns, axis=1)
    lines += ["MOTION", f"Frames: {len(values)}", f"Frame Time: {frame_time}"]
    lines += [" ".join(f"{v:.6f}" for v in row) for row in values]
    path.write_text("\n".join(lines) + "\n")


def expected_joints(motion: HumanMotion) -> Array:
    """Joint positions (T, 24, 3) of the motion, by the shared forward kinematics."""
    return place_joints(world_rotations(motion.joint_rotations), motion.root_translation, motion.skeleton)
