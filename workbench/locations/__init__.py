"""Locations of data: a folder, or a URL of an object store such as "s3://bucket/results".

location("results/a")       the `pathlib.Path` of a folder or file
location("s3://bucket/a")   an `ObjectPath`, which has the methods of a Path that the workbench uses
lock(location, ...)         the exclusive right to write into a location
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from workbench.errors import DataError
from workbench.locations.locks import FolderLock, ObjectLock
from workbench.locations.objects import ObjectPath

__all__ = [
    "FolderLock",
    "Location",
    "ObjectLock",
    "ObjectPath",
    "is_url",
    "local_path",
    "location",
    "lock",
    "matching",
    "open_binary",
    "opened",
    "size_B",
]


class Location(Protocol):
    """The methods that a `pathlib.Path` and an `ObjectPath` share, as far as the workbench uses them."""

    @property
    def name(self) -> str: ...
    @property
    def parent(self) -> Any: ...
    def __truediv__(self, name: str, /) -> Any: ...
    def __lt__(self, other: Any, /) -> bool: ...
    def with_name(self, name: str, /) -> Any: ...
    def absolute(self) -> Any: ...
    def glob(self, pattern: str, /) -> Iterator[Any]: ...
    def iterdir(self) -> Iterator[Any]: ...
    def exists(self) -> bool: ...
    def is_file(self) -> bool: ...
    def is_dir(self) -> bool: ...
    def stat(self) -> Any: ...
    def open(self, mode: Any = ..., /) -> Any: ...
    def read_bytes(self) -> bytes: ...
    def write_bytes(self, content: bytes, /) -> Any: ...
    def mkdir(self, *, parents: bool, exist_ok: bool) -> None: ...
    def replace(self, target: Any, /) -> Any: ...
    def unlink(self, missing_ok: bool = ...) -> None: ...


# One letter before "://" would be a drive of Windows.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(place: Any) -> bool:
    """Return whether ``place`` is the text of a URL, such as "s3://bucket/results", or an `ObjectPath`."""
    return isinstance(place, ObjectPath) or (isinstance(place, str) and _URL.match(place) is not None)


def location(place: str | os.PathLike[str] | Location) -> Location:
    """Return the `ObjectPath` of a URL, or the Path of any other ``place``.

    Raises DataError for a URL without a bucket. The kind of store is not checked before its first use.
    """
    if isinstance(place, ObjectPath):
        return place
    if isinstance(place, str) and is_url(place):
        return ObjectPath(place)
    return Path(cast("str | os.PathLike[str]", place))


def local_path(place: Any, argument: str) -> Path:
    """Return ``place`` as the Path of a file or folder on this machine. Raises DataError for a URL.

    ``argument`` is the name of the caller's argument, for the message.
    """
    if is_url(place):
        raise DataError(
            f"the argument `{argument}` is {str(place)!r:.80}, a URL; it must be a path on this machine, because "
            "only the results and traces of sweeps, logs and windows can be at a URL"
        )
    return Path(place)


def lock(place: Location, name: str, activity: str) -> FolderLock | ObjectLock:
    """Lock the folder ``place`` for writing, and return its lock; ``name`` is the name of the lock's file or object.

    ``activity`` is the work of the holder, for messages, such as "runs a sweep into it". Raises DataError if another
    process holds the lock.
    """
    if isinstance(place, ObjectPath):
        return ObjectLock(place, name, activity)
    return FolderLock(cast(Path, place), name, activity)


def open_binary(place: str | os.PathLike[str] | Location) -> BinaryIO:
    """Open a file or an object for reading. Raises OSError if it cannot be read."""
    return location(place).open("rb")


def size_B(place: str | os.PathLike[str] | Location) -> int:
    """Return the size of a file or an object in bytes.

    Returns 0 if it does not exist, or if it is not a regular file but, for example, a pipe.
    """
    file = location(place)
    return file.stat().st_size if file.is_file() else 0


def matching(place_or_pattern: str) -> list[str]:
    """Return the names of the files or objects that match a pattern, sorted.

    A name without wildcards is returned as it is, even if no such file exists. So is the name of an existing file that
    contains characters of wildcards. A URL may have wildcards only after its last "/". Raises DataError for other
    wildcards in a URL, and if no file matches a pattern.
    """
    if not glob.has_magic(place_or_pattern) or location(place_or_pattern).exists():
        return [place_or_pattern]
    if is_url(place_or_pattern):
        folder, _, pattern = place_or_pattern.rpartition("/")
        if glob.has_magic(folder):
            raise DataError(f"{place_or_pattern!r} has a wildcard before its last '/'; use wildcards after it only")
        names = sorted(map(str, location(folder).glob(pattern)))
    else:
        names = sorted(filter(os.path.isfile, glob.glob(place_or_pattern, recursive=True)))
    if not names:
        raise DataError(f"no file matches {place_or_pattern!r}")
    return names


def opened(file: Location) -> Any:
    """Return ``file`` in a form that pyarrow can read: the path of a local file, or an open file for an object."""
    return file.open("rb") if isinstance(file, ObjectPath) else file
