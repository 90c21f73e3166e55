"""The kinds of files other than texts of numbers: a line each, longer endings first."""

from __future__ import annotations

from pathlib import Path

from taco_py.data.storage.containers import hdf5, npz, parquet, rutherford_boeing
from taco_py.data.storage.containers.container import Container

CONTAINERS: tuple[Container, ...] = (
    hdf5.DESCRIBED,
    hdf5.CONTAINER,
    npz.CONTAINER,
    parquet.CONTAINER,
    rutherford_boeing.CONTAINER,
)
ENDINGS = tuple(ending for container in CONTAINERS for ending in container.endings)


def container_named(name: str) -> Container | None:
    """Return the kind of a file by its name without the ending of a compression; None for a
    text."""
    low = name.lower()
    matches = (
        container for container in CONTAINERS if low.endswith(container.endings) and Path(low).stem
    )
    return next(matches, None)


def container_that_starts(content: bytes) -> Container | None:
    """Return the kind of a file by its first bytes; None for a text."""
    matches = (
        container
        for container in CONTAINERS
        if container.starts and content.startswith(container.starts)
    )
    return next(matches, None)
