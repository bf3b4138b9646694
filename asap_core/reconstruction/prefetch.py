"""An iterator that works ahead in a thread of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def prefetched(source: Iterator[T], depth: int = 2) -> Iterator[T]:
    """The same items, of which `depth` are made ahead; an error comes where its item would."""
    with ThreadPoolExecutor(1) as worker:
        pending = deque(worker.submit(_next, source) for _ in range(depth))
        while item := pending.popleft().result():
            pending.append(worker.submit(_next, source))
            yield item[0]


def _next(source: Iterator[T]) -> tuple[T] | None:
    for item in source:
        return (item,)
    return None
