"""The item store: made once, atomic, remade when corrupted, safe with several processes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from asap_core.errors import StageError
from tasks.item_store import ItemStore

KEY = "ab12cd"


class Maker:
    """Writes one file and counts how often it was asked to."""

    def __init__(self, text: str = "42") -> None:
        self.text = text
        self.calls = 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        (folder / "value.txt").write_text(self.text)


def test_second_request_reads_what_the_first_made(tmp_path: Path) -> None:
    maker = Maker()
    first = ItemStore(tmp_path).get_or_make(KEY, maker)
    second = ItemStore(tmp_path).get_or_make(KEY, maker)
    assert first == second == tmp_path / ".asap" / "store" / "ab" / KEY / "item"
    assert (first / "value.txt").read_text() == "42"
    assert maker.calls == 1


@pytest.mark.parametrize("damage", ["changed", "truncated", "added", "removed", "digest"])
def test_corrupted_item_is_remade(tmp_path: Path, damage: str) -> None:
    maker = Maker()
    item = ItemStore(tmp_path).get_or_make(KEY, maker)
    if damage == "removed":
        (item / "value.txt").unlink()
    elif damage == "added":
        (item / "other.txt").write_text("x")
    elif damage == "digest":
        (item.parent / "digest.sha256").unlink()
    else:
        (item / "value.txt").write_text("43" if damage == "changed" else "")
    again = ItemStore(tmp_path).get_or_make(KEY, maker)
    assert [p.name for p in again.iterdir()] == ["value.txt"]
    assert (again / "value.txt").read_text() == "42"
    assert maker.calls == 2


def test_failed_item_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half.txt").write_text("half")
        raise ValueError("stopped")

    with pytest.raises(ValueError, match="stopped"):
        ItemStore(tmp_path).get_or_make(KEY, fail)
    assert list((tmp_path / ".asap" / "store" / "ab").iterdir()) == []


def test_concurrent_makers_agree(tmp_path: Path) -> None:
    makers = [Maker("same") for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        items = list(pool.map(lambda maker: ItemStore(tmp_path).get_or_make(KEY, maker), makers))
    assert len(set(items)) == 1
    assert (items[0] / "value.txt").read_text() == "same"
    assert [p.name for p in (tmp_path / ".asap" / "store" / "ab").iterdir()] == [KEY]


@pytest.mark.parametrize("key", ["", "ab", "../../etc", "a/b/c"])
def test_key_that_is_no_folder_name_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(StageError, match="item key"):
        ItemStore(tmp_path).get_or_make(key, Maker())


def test_what_a_killed_process_left_is_swept_and_a_running_one_is_let_be(tmp_path: Path) -> None:
    folder = tmp_path / ".asap" / "store" / KEY[:2]
    old, young = folder / f".partial-{KEY}-1", folder / f".partial-{KEY}-2"
    for left in (old, young):
        (left / "item").mkdir(parents=True)
    os.utime(old, (0, 0))
    ItemStore(tmp_path).get_or_make(KEY, Maker())
    assert not old.exists()
    assert young.exists()


def test_digest_that_is_no_text_counts_as_damage(tmp_path: Path) -> None:
    item = ItemStore(tmp_path).get_or_make(KEY, Maker())
    (item.parent / "digest.sha256").write_bytes(b"\xff\xfe")
    assert (ItemStore(tmp_path).get_or_make(KEY, Maker()) / "value.txt").read_text() == "42"
