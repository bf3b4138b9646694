"""The process of a stage that runs apart (`stage_process.py` starts it): `python -m tasks.stage_child STAGE`.

Where torchrun starts several of it, all train together and the first one reports.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tasks.stages import check_stage, limit_threads, read_params, run_here


def main(stage: str) -> int:
    """Run the stage; exit status 0 if it succeeded."""
    limit_threads()
    from asap_core.child_report import end_with_parent, report_from_environment, work_under_report
    from tasks.stage_process import OUTPUTS

    root = Path(".")
    if os.environ.get("RANK", "0") != "0":
        end_with_parent()
        run_here(stage, read_params(root), root)
        return 0
    report = report_from_environment()
    done = work_under_report(report, root, OUTPUTS[stage], lambda: run_here(stage, read_params(root), root))
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main(check_stage(sys.argv[1])))
