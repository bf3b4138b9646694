"""What all tests share: where the shared data lie, and how many tests were skipped for want of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_WANT_OF_DATA = "shared data absent"


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The project's root folder."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_dir(repo_root: Path) -> Path:
    """The folder of shared data, `ASAP_SHARED` or `../shared`; the test is skipped where it is absent."""
    path = Path(os.environ.get("ASAP_SHARED", repo_root.parent / "shared"))
    if not (path / "data").is_dir():
        pytest.skip(f"{_WANT_OF_DATA}: {path}/data (set ASAP_SHARED)")
    return path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the number of tests that were skipped for want of shared data."""
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum(_WANT_OF_DATA in str(report.longrepr) for report in skipped)
    terminalreporter.write_line(f"skipped for want of shared data: {count}")
