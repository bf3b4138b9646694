from __future__ import annotations

import enum
import gzip
import os
import pickle
import struct
import sys
import types
import zipfile
import zlib
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from asap_core import pickle_stand_ins, restricted_pickle
from asap_core.errors import InputFileError
from asap_core.restricted_pickle import EnumValue, load_restricted, load_torch


def _content() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    shared = rng.normal(size=(4, 3)).astype(np.float32)
    return {
        "twice": [shared, shared],
        "fortran": np.asfortranarray(rng.normal(size=(3, 5))),
        "big_endian": np.arange(5, dtype=">i4"),
        "mask": np.array([True, False]),
        "names": np.array(["left", "right"]),
        "scalar": np.float32(2.5),
        "number": np.array(30),
        "objects": np.array([{"a": 1}, None], dtype=object),
        "ordered": OrderedDict(x=(1, 2.5, b"c", None)),
        "empty": np.zeros((0, 3)),
    }


def _same(found: Any, wanted: Any) -> None:
    for key, value in wanted.items():
        np.testing.assert_array_equal(np.asarray(found[key]), np.asarray(value), err_msg=key)
        if isinstance(value, np.ndarray):
            assert found[key].dtype.newbyteorder("=") == value.dtype.newbyteorder("=")
    assert found["twice"][0] is found["twice"][1]


@pytest.mark.parametrize("protocol", range(6))
def test_every_pickle_protocol_gives_the_same_content(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(_content(), protocol))
    _same(load_restricted(tmp_path / "a.pkl"), _content())


@pytest.mark.parametrize("compress", [0, 3])
def test_joblib_files_are_read(tmp_path: Path, compress: int) -> None:
    joblib = pytest.importorskip("joblib")
    content = _content() | {"twice": [None, None]}
    joblib.dump(content, tmp_path / "a.pkl", compress=compress)
    _same(load_restricted(tmp_path / "a.pkl"), content)


def test_npy_with_a_pickled_dict_of_tensors_comes_as_arrays(tmp_path: Path) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    content = {"whole": base, "turned": base.T, "row": base[2], "long": torch.arange(3), "one": base[:1].expand(5, 6)}
    np.save(tmp_path / "a.npy", np.array(content, dtype=object), allow_pickle=True)
    found = load_restricted(tmp_path / "a.npy")
    for key, tensor in content.items():
        assert isinstance(found[key], np.ndarray)
        assert found[key].dtype == tensor.numpy().dtype
        np.testing.assert_array_equal(found[key], tensor.numpy())
    np.save(tmp_path / "b.npy", np.arange(4.0))
    np.testing.assert_array_equal(load_restricted(tmp_path / "b.npy"), np.arange(4.0))


class _Call:
    def __init__(self, function: Any, *args: Any) -> None:
        self.call = (function, args)

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize(
    "build",
    [
        lambda mark: _Call(os.system, f"touch {mark}"),
        lambda mark: _Call(eval, f"open({str(mark)!r}, 'w')"),
        lambda mark: _Call(Path.touch, mark),
        lambda mark: _Call(np.load, str(mark)),
        lambda mark: _Call(getattr, "a", "upper"),
        lambda mark: {"ok": np.array([_Call(os.system, f"touch {mark}")], dtype=object)},
        lambda mark: _Call(torch.storage._load_from_bytes, pickle.dumps(_Call(os.system, f"touch {mark}"))),
    ],
)
def test_no_code_runs(tmp_path: Path, build: Any) -> None:
    mark = tmp_path / "mark"
    bomb = build(mark)
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(bomb))
    np.save(tmp_path / "b.npy", np.array(bomb, dtype=object), allow_pickle=True)
    torch.save(bomb, tmp_path / "c.pt")
    for name in ("a.pkl", "b.npy"):
        with pytest.raises(InputFileError, match="not a readable pickle"):
            load_restricted(tmp_path / name)
    with pytest.raises(InputFileError, match="not a readable torch file"):
        load_torch(tmp_path / "c.pt")
    assert not mark.exists()


def _forged_object_dtype() -> bytes:
    """Type O with its flags cleared: numpy would take eight bytes of the file for the address of an object."""
    return (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
        b"(K\x01(K\x01tcnumpy\ndtype\n(X\x02\x00\x00\x00O8K\x00K\x01tR(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xff"
        b"J\xff\xff\xff\xffK\x00tbK\x00C\x08AAAAAAAAtb."
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (_forged_object_dtype(), "array of objects"),
        (b"\x80\x05\x96" + struct.pack("<Q", 1 << 50) + b".", "more than"),
        (b"\x80\x02\x82\x01.", "extension"),
        (b"ccollections\nOrderedDict\n}(X\x01\x00\x00\x00xK\x01ub.", "a state for type"),
        (b"cnumpy.core.multiarray\n_reconstruct\n}(X\x01\x00\x00\x00xK\x01ub.", "a state for function"),
        (b"", "EOFError"),
        (gzip.compress(b"x"), "not a readable pickle"),
        (zlib.compress(pickle.dumps([1] * 100))[:-6], "cut|not a readable"),
    ],
)
def test_forged_streams_are_refused(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "a.pkl").write_bytes(data)
    with pytest.raises(InputFileError, match=words):
        load_restricted(tmp_path / "a.pkl")


def test_tensor_beyond_its_storage_is_refused(tmp_path: Path) -> None:
    data = pickle.dumps(torch.arange(4.0))
    assert data.count(b"K\x04\x85") == 1
    (tmp_path / "a.pkl").write_bytes(data.replace(b"K\x04\x85", b"K\x05\x85"))
    with pytest.raises(InputFileError, match="reaches to number 4 of a storage of 4"):
        load_restricted(tmp_path / "a.pkl")


def test_sizes_are_bounded_before_memory_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (restricted_pickle, pickle_stand_ins):
        monkeypatch.setattr(module, "MAX_BYTES", 1 << 16)
    (tmp_path / "a.pkl").write_bytes(zlib.compress(pickle.dumps(np.zeros(1 << 14))))
    with pytest.raises(InputFileError, match="more than 65536 bytes once unpacked"):
        load_restricted(tmp_path / "a.pkl")
    (tmp_path / "b.pkl").write_bytes(pickle.dumps(np.zeros(1 << 14)))
    with pytest.raises(InputFileError, match="size: found 131"):
        load_restricted(tmp_path / "b.pkl")
    one = torch.zeros(1)
    (tmp_path / "c.pkl").write_bytes(pickle.dumps([one.expand(9000), one.expand(9001)]))
    with pytest.raises(InputFileError, match="72004 bytes, more than 65536"):
        load_restricted(tmp_path / "c.pkl")
    with zipfile.ZipFile(tmp_path / "d.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("d/data.pkl", bytes(1 << 17))
    with pytest.raises(InputFileError, match="131072 bytes, more than 65536"):
        load_torch(tmp_path / "d.pt")


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    for load in (load_restricted, load_torch):
        with pytest.raises(InputFileError, match="gone: missing"):
            load(tmp_path / "gone")
        with pytest.raises(InputFileError, match="a folder, expected a file"):
            load(tmp_path)


def test_torch_file_with_an_enumeration_of_protomotions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("protomotions.simulator_state")
    conversion = enum.Enum("StateConversion", {"COMMON": "common"}, module=module.__name__)
    module.StateConversion = conversion  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "protomotions", types.ModuleType("protomotions"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    torch.save(
        {"fps": 30, "dof_pos": torch.ones(2, 3), "state_conversion": conversion("common")}, tmp_path / "a.motion"
    )
    monkeypatch.delitem(sys.modules, module.__name__)
    found = load_torch(tmp_path / "a.motion")
    assert isinstance(found["state_conversion"], EnumValue)
    assert found["state_conversion"].value == "common"
    assert torch.equal(found["dof_pos"], torch.ones(2, 3))


def test_cut_torch_files_are_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(100)}, tmp_path / "a.pt")
    data = (tmp_path / "a.pt").read_bytes()
    for size in (0, 30, len(data) // 2, len(data) - 5):
        (tmp_path / "a.pt").write_bytes(data[:size])
        with pytest.raises(InputFileError, match="not a readable torch file"):
            load_torch(tmp_path / "a.pt")
