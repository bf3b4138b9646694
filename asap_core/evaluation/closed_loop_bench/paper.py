"""Table IV of the paper (arXiv 2502.01143): closed loop, means; its ± are left out.

Success in %, E_g_mpjpe and E_mpjpe in mm, E_acc in mm/frame², E_vel in mm/frame. Its targets are other simulators, its
motions by level are not published.
"""

from __future__ import annotations

from collections.abc import Mapping

FIGURES = ("success", "E_g_mpjpe", "E_mpjpe", "E_acc", "E_vel")
Row = tuple[float, float, float, float, float]

# fmt: off
TABLE_IV: Mapping[str, Mapping[str, Mapping[str, Row]]] = {
    "IsaacSim": {
        "easy": {
            "Oracle":        (100.0,  97.5, 43.2, 2.56, 4.48),
            "Vanilla":       (100.0, 107.0, 45.4, 2.83, 4.59),
            "SysID":         (100.0, 105.0, 47.8, 3.09, 4.98),
            "DeltaDynamics": (100.0, 127.0, 56.7, 3.50, 5.56),
            "ASAP":          (100.0, 106.0, 44.3, 2.74, 4.46),
        },
        "medium": {
            "Oracle":        (100.0, 111.0, 48.8, 2.63, 4.82),
            "Vanilla":       (100.0, 114.0, 49.2, 2.92, 5.07),
            "SysID":         (100.0, 115.0, 49.1, 3.43, 5.01),
            "DeltaDynamics": (83.3,  151.0, 68.0, 2.90, 5.90),
            "ASAP":          (100.0, 112.0, 49.3, 2.53, 4.45),
        },
        "hard": {
            "Oracle":        (100.0, 116.0, 52.5, 3.40, 6.16),
            "Vanilla":       (100.0, 148.0, 51.6, 4.41, 6.88),
            "SysID":         (100.0, 165.0, 58.4, 4.87, 7.13),
            "DeltaDynamics": (66.7,  137.0, 60.2, 4.20, 7.10),
            "ASAP":          (100.0, 129.0, 56.5, 3.72, 6.52),
        },
    },
    "Genesis": {
        "easy": {
            "Oracle":        (100.0,  97.5, 43.2, 2.56, 4.48),
            "Vanilla":       (100.0, 140.0, 70.1, 2.68, 4.65),
            "SysID":         (100.0, 127.0, 79.9, 2.99, 4.95),
            "DeltaDynamics": (83.3,  168.0, 87.0, 3.08, 5.39),
            "ASAP":          (100.0, 125.0, 73.5, 2.10, 4.11),
        },
        "medium": {
            "Oracle":        (100.0, 111.0, 48.8, 2.63, 4.82),
            "Vanilla":       (94.3,  169.0, 72.0, 3.26, 5.86),
            "SysID":         (100.0, 138.0, 75.4, 3.14, 5.50),
            "DeltaDynamics": (83.3,  190.0, 89.4, 3.44, 7.49),
            "ASAP":          (100.0, 126.0, 71.2, 2.81, 5.13),
        },
        "hard": {
            "Oracle":        (100.0, 116.0, 52.5, 3.40, 6.16),
            "Vanilla":       (82.9,  175.0, 80.7, 3.87, 7.19),
            "SysID":         (100.0, 186.0, 93.0, 4.98, 8.98),
            "DeltaDynamics": (60.0,  190.0, 89.6, 4.29, 8.70),
            "ASAP":          (100.0, 129.0, 77.0, 2.69, 5.65),
        },
    },
}
# fmt: on
"""Target simulator → level → method → `FIGURES`."""
