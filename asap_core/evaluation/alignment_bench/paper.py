"""The paper's Table III, and what this project asks of the shares closed."""

from __future__ import annotations

from collections.abc import Mapping

_Rows = Mapping[str, tuple[float, float, float, float]]

TABLE_III: Mapping[str, Mapping[float, _Rows]] = {
    "IsaacSim": {
        0.25: {
            "zero": (19.5, 15.1, 6.44, 5.80),
            "sysid": (19.4, 15.0, 6.43, 5.74),
            "delta_dynamics": (24.4, 13.6, 9.43, 7.85),
            "delta": (19.9, 15.6, 6.48, 5.86),
        },
        0.5: {
            "zero": (33.3, 23.2, 6.80, 6.84),
            "sysid": (32.1, 22.2, 6.57, 6.56),
            "delta_dynamics": (36.5, 16.4, 8.89, 7.98),
            "delta": (26.8, 19.2, 5.09, 5.36),
        },
        1.0: {
            "zero": (80.8, 43.5, 10.6, 11.1),
            "sysid": (77.6, 41.5, 10.2, 10.7),
            "delta_dynamics": (68.1, 21.5, 9.61, 9.14),
            "delta": (37.9, 22.9, 4.38, 5.26),
        },
    },
    "Genesis": {
        0.25: {
            "zero": (19.8, 15.3, 6.53, 5.88),
            "sysid": (19.3, 15.0, 6.42, 5.73),
            "delta_dynamics": (20.0, 12.4, 8.42, 6.89),
            "delta": (19.0, 14.9, 6.19, 5.59),
        },
        0.5: {
            "zero": (33.1, 23.0, 6.78, 6.82),
            "sysid": (32.2, 22.3, 6.57, 6.57),
            "delta_dynamics": (27.8, 14.0, 7.63, 6.74),
            "delta": (25.9, 18.4, 4.93, 5.19),
        },
        1.0: {
            "zero": (82.5, 44.5, 10.8, 11.4),
            "sysid": (76.5, 41.6, 10.0, 10.5),
            "delta_dynamics": (50.2, 17.2, 8.19, 7.62),
            "delta": (36.9, 22.6, 4.23, 5.10),
        },
    },
}
"""Target → horizon in s → method → `score.FIGURES`, in IsaacGym. Its gaps are others than these twins'."""

WANTED: Mapping[tuple[str, str, float], tuple[float, float]] = {
    ("altered", "delta", 1.0): (0.67, 0.85),
    ("altered", "delta", 0.25): (0.70, 0.85),
    ("altered_delay", "delta", 1.0): (0.60, 0.80),
    ("altered", "two_stage", 1.0): (0.90, 0.97),
    ("altered_delay", "two_stage", 1.0): (0.80, 0.97),
    ("strength", "delta", 1.0): (0.75, 0.90),
    ("frictionloss", "delta", 1.0): (0.45, 0.65),
    ("mass", "delta", 1.0): (0.55, 0.75),
    ("armature", "delta", 1.0): (0.25, 0.60),
    ("delay", "delta", 1.0): (0.90, 0.98),
}
"""Target, rival and horizon in s → share closed that is asked for at least, and that is aimed at."""


def paper_closed(simulator: str, horizon_s: float, rival: str) -> float | None:
    """Share of the open-loop E_g_mpjpe that the paper's `rival` closes; None where it has none."""
    rows = TABLE_III[simulator][horizon_s]
    return 1.0 - rows[rival][0] / rows["zero"][0] if rival in rows and rival != "zero" else None
