"""One machine, no Docker: Prefect, MLflow and a worker on loopback, stopped together.

Everything lies in the project's `.asap` folder: Prefect's home and database, MLflow's database and artefacts, the logs.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from asap_core.errors import StageError
from asap_core.files import make_folder
from asap_core.processes import stop_group

HOST = "127.0.0.1"
WORK_POOL = "asap-local"
_READY_S = 120.0
Say = Callable[[str], None]


def local_environment(root: Path, prefect_port: int) -> dict[str, str]:
    """The environment of all processes: the project's own Prefect profile, no telemetry, no pickled models."""
    return {
        **os.environ,
        "PREFECT_HOME": str(root / ".asap" / "prefect"),
        "PREFECT_API_URL": f"http://{HOST}:{prefect_port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "false",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }


def serve(root: Path, prefect_port: int, mlflow_port: int, say: Say) -> None:
    """Start everything, print the addresses, and stay until Ctrl-C, SIGTERM or the end of one of the processes.

    Raises:
        StageError: a port is taken, a server does not become ready, or one of the processes ended by itself.
    """
    if not (root / "prefect.yaml").is_file():
        raise StageError(f"{root / 'prefect.yaml'}: missing; `asap ui` runs in the project's folder")
    for name, port in (("PREFECT_PORT", prefect_port), ("MLFLOW_PORT", mlflow_port)):
        _check_free(name, port)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    environment = local_environment(root, prefect_port)
    prefect_url, mlflow_url = f"http://{HOST}:{prefect_port}", f"http://{HOST}:{mlflow_port}"
    logs = root / ".asap" / "logs"
    make_folder(logs)
    with ExitStack() as stack:
        processes: dict[str, subprocess.Popen[bytes]] = {}

        def start(name: str, command: list[str]) -> None:
            log = logs / f"{name}.log"
            processes[name] = stack.enter_context(_process(command, root, environment, log))

        try:
            say("starting; the servers take about 20 s")
            start("prefect", _prefect("server", "start", "--host", HOST, "--port", str(prefect_port)))
            start("mlflow", _mlflow_command(root, mlflow_port))
            _wait_ready(f"{prefect_url}/api/health", "prefect", processes, logs)
            _deploy(root, environment, logs / "deploy.log")
            start("worker", _prefect("worker", "start", "--pool", WORK_POOL, "--type", "process"))
            _wait_ready(f"{mlflow_url}/health", "mlflow", processes, logs)
            say(f"Prefect: {prefect_url}\nMLflow:  {mlflow_url}\nlogs:    {logs}\nCtrl-C stops all three processes")
            _watch(processes, logs)
        except KeyboardInterrupt:
            say("stopping")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _prefect(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "prefect", *arguments]


def _mlflow_command(root: Path, port: int) -> list[str]:
    store, artefacts = root / ".asap" / "mlflow.db", (root / ".asap" / "mlartifacts").as_uri()
    backend = ["--backend-store-uri", f"sqlite:///{store}", "--default-artifact-root", artefacts]
    return [sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port), "--workers", "1", *backend]


def _check_free(name: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise StageError(
                f"{name}: {HOST}:{port} is taken ({error.strerror}); choose another: make ui {name}=…"
            ) from error


@contextmanager
def _process(
    command: list[str], root: Path, environment: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own; on leaving, it and its children are ended."""
    with open(log, "wb") as stream:
        process = subprocess.Popen(
            command, cwd=root, env=environment, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        stop_group(process, terminations=2)  # a worker may outlive the first


def _wait_ready(url: str, name: str, processes: Mapping[str, subprocess.Popen[bytes]], logs: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        _check_alive(processes, logs)
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    raise StageError(f"{name}: {url} did not answer within {_READY_S:g} s; see {logs / name}.log")


def _deploy(root: Path, environment: Mapping[str, str], log: Path) -> None:
    """Create the work pool and bring the deployments of prefect.yaml to the server."""
    commands = (
        _prefect("work-pool", "create", WORK_POOL, "--type", "process", "--overwrite"),
        _prefect("--no-prompt", "deploy", "--all"),
    )
    with open(log, "wb") as stream:
        for command in commands:
            done = subprocess.run(command, cwd=root, env=environment, stdout=stream, stderr=subprocess.STDOUT)
            if done.returncode != 0:
                raise StageError(f"{' '.join(command[2:])}: exit status {done.returncode}; see {log}")


def _check_alive(processes: Mapping[str, subprocess.Popen[bytes]], logs: Path) -> None:
    for name, process in processes.items():
        if process.poll() is not None:
            raise StageError(f"{name}: ended with status {process.returncode}; see {logs / name}.log")


def _watch(processes: Mapping[str, subprocess.Popen[bytes]], logs: Path) -> None:
    while True:
        _check_alive(processes, logs)
        time.sleep(1)
