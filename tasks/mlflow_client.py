"""One door to MLflow: the project's SQLite database, or the server that `MLFLOW_TRACKING_URI` names."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from asap_core.errors import StageError
from asap_core.files import make_folder
from tasks.item_store import PARTIAL, sweep_partials

if TYPE_CHECKING:
    from mlflow import MlflowClient

EXPERIMENT = "asap"
_SERVER = "MLFLOW_TRACKING_URI"


def tracking_uri(root: Path) -> str:
    """Where runs and models are recorded: `MLFLOW_TRACKING_URI`, else `<root>/.asap/mlflow.db`."""
    return os.environ.get(_SERVER) or f"sqlite:///{(root / '.asap' / 'mlflow.db').resolve()}"


def is_empty(root: Path) -> bool:
    """Whether the project has no store yet: no server is named, and there is no database."""
    return not os.environ.get(_SERVER) and not (root / ".asap" / "mlflow.db").exists()


@contextmanager
def clear_errors(root: Path) -> Iterator[None]:
    """Turn what MLflow and its database raise into a `StageError` that names the store."""
    _set_environment()
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, OSError) as error:
        store = tracking_uri(root)
        text = (str(getattr(error, "orig", None) or error) or type(error).__name__).splitlines()[0]
        hint = "; a damaged database may be deleted, `asap models sync` rebuilds it" if is_local(store) else ""
        raise StageError(f"{store}: {text}{hint}") from error


def is_local(store: str) -> bool:
    """Whether a tracking store is a database file."""
    return store.startswith("sqlite:")


def open_client(root: Path) -> MlflowClient:
    """A client on the project's tracking store, which is created when absent.

    `MLFLOW_RUN_ID` is dropped from the environment: MLflow would log into that foreign run. Loading pickled models and
    telemetry are turned off.
    """
    _set_environment()
    make_folder(root / ".asap")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    import mlflow

    uri = tracking_uri(root)
    given = _SERVER in os.environ
    if not given:
        _make_database(root / ".asap" / "mlflow.db")
    mlflow.set_tracking_uri(uri)
    mlflow.set_registry_uri(uri)
    if not given:  # set_tracking_uri exports it, and another project in this process would take it for the user's
        os.environ.pop(_SERVER, None)
    return mlflow.MlflowClient(tracking_uri=uri, registry_uri=uri)


def _make_database(path: Path) -> None:
    """Create the tables beside `path` and put the whole database in place: MLflow cannot go on with half of them."""
    import mlflow

    sweep_partials(path.parent)
    if path.exists():
        return
    partial = path.with_name(f"{PARTIAL}{path.name}-{uuid.uuid4().hex[:8]}")
    try:
        uri = f"sqlite:///{partial.resolve()}"
        mlflow.MlflowClient(tracking_uri=uri, registry_uri=uri).search_experiments(max_results=1)
        with suppress(FileExistsError):  # another process was first
            os.link(partial, path)
    finally:
        for left in path.parent.glob(f"{partial.name}*"):
            left.unlink(missing_ok=True)


def _set_environment() -> None:
    """Before MLflow is imported."""
    os.environ.pop("MLFLOW_RUN_ID", None)
    os.environ.setdefault("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")


def experiment_id(client: MlflowClient, root: Path) -> str:
    """The id of the project's experiment, made when absent; a local one keeps artefacts in `.asap/mlartifacts`."""
    experiment = client.get_experiment_by_name(EXPERIMENT)
    if experiment is not None:
        return str(experiment.experiment_id)
    location = None if os.environ.get(_SERVER) else (root / ".asap" / "mlartifacts").resolve().as_uri()
    return str(client.create_experiment(EXPERIMENT, artifact_location=location))
