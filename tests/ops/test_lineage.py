"""Where a model version came from, in tags that MLflow takes."""

from __future__ import annotations

from pathlib import Path

import yaml
from mlflow.utils.validation import _validate_tag_name

from tasks.lineage import lineage_tags


def test_partitioned_outputs_make_valid_tag_names(tmp_path: Path) -> None:
    outs = [{"path": "data/rollouts/kind=twin", "md5": "a.dir"}, {"path": "evaluation", "md5": "b"}]
    (tmp_path / "dvc.lock").write_text(yaml.safe_dump({"stages": {"collect": {"outs": outs}}}))
    tags = lineage_tags(tmp_path)
    assert tags["dvc:data/rollouts/kind:twin"] == "a.dir"
    assert not any("evaluation" in name for name in tags)
    for name in tags:
        _validate_tag_name(name)
