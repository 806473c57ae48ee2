"""Objects of an object store (S3, Google Cloud Storage, Azure), with the methods of a `pathlib.Path`.

Theory of operation
    The library obstore reads and writes the objects. A store has no folders: a folder is the common beginning of its
    objects' names, and exists as long as one of them exists. An object is written as a whole, so readers never see a
    part of it. Two writes are conditional, which makes them atomic between processes: `ObjectPath.create` succeeds only
    if the name is free, and `ObjectPath.replace_version` only if the object has not changed.

    Credentials, region and endpoint are those of the environment variables of the store, such as AWS_ACCESS_KEY_ID,
    AWS_REGION and AWS_ENDPOINT_URL. An endpoint without encryption needs AWS_ALLOW_HTTP=true.

Cost
    A request per operation. An open file reads ahead 1 MB, so reading a part of a large object does not transfer all.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cache
from typing import IO, Any, NamedTuple

from workbench.errors import DataError

_READ_AHEAD_B = 1 << 20
_RETRIES: dict[str, Any] = {"max_retries": 8, "retry_timeout": timedelta(seconds=60)}


class Stat(NamedTuple):
    """The size of an object in bytes, under the name that `os.stat_result` uses."""

    st_size: int


@cache
def _open_store(root: str) -> Any:
    """Return the store of a URL without a path, such as "s3://bucket". Raises DataError if it cannot be used."""
    try:
        from obstore.store import from_url
    except ImportError:
        raise DataError(
            f"{root} is an object store, which needs obstore: pip install 'sensor-pubsub-workbench[objects]'"
        ) from None
    try:
        return from_url(root, retry_config=_RETRIES)  # type: ignore[call-overload]
    except Exception as error:
        raise DataError(f"{root} cannot be used as an object store: {_error_text(error)}") from None


class ObjectPath:
    """An object, or a folder of objects, named by its URL. Errors of the store are raised as OSError."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        bucket, _, path = rest.partition("/")
        self._root = f"{scheme}://{bucket}"
        self._key = "/".join(part for part in path.split("/") if part)
        if not bucket:
            raise DataError(f"{url!r} names no bucket; write it as s3://bucket/folder")

    def __str__(self) -> str:
        return f"{self._root}/{self._key}" if self._key else self._root

    def __repr__(self) -> str:
        return f"ObjectPath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and str(self) == str(other)

    def __lt__(self, other: ObjectPath) -> bool:
        return str(self) < str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(f"{self}/{name}")

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self._key.rpartition("/")[2]

    @property
    def parent(self) -> ObjectPath:
        """The folder of this object."""
        return ObjectPath(f"{self._root}/{self._key.rpartition('/')[0]}")

    def with_name(self, name: str) -> ObjectPath:
        """Return the object called ``name`` in the folder of this object."""
        return self.parent / name

    def absolute(self) -> ObjectPath:
        """Return this object: a URL is absolute."""
        return self

    @property
    def _store(self) -> Any:
        return _open_store(self._root)

    # Reading

    def glob(self, pattern: str) -> Iterator[ObjectPath]:
        """Yield the objects in this folder, but not in folders below it, whose names match a pattern."""
        return (path for path in self.iterdir() if fnmatchcase(path.name, pattern))

    def iterdir(self) -> Iterator[ObjectPath]:
        """Yield the objects in this folder, but not folders and objects below them."""
        import obstore

        with _raise_os_errors():
            objects = obstore.list_with_delimiter(self._store, self._key or None)["objects"]
        for entry in objects:
            yield ObjectPath(f"{self._root}/{entry['path']}")

    def exists(self) -> bool:
        """Return whether an object has this URL, or is in a folder with this URL."""
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        """Return whether an object has this URL."""
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Return whether an object exists in this folder, or in a folder below it."""
        import obstore

        with _raise_os_errors():
            listing = obstore.list_with_delimiter(self._store, self._key or None)
        return bool(listing["objects"] or listing["common_prefixes"])

    def stat(self) -> Stat:
        """Return the size of this object. Raises FileNotFoundError if it does not exist."""
        import obstore

        with _raise_os_errors():
            return Stat(obstore.head(self._store, self._key)["size"])

    def read_bytes(self) -> bytes:
        """Return the content of this object. Raises FileNotFoundError if it does not exist."""
        return self.read_version()[0]

    def read_version(self) -> tuple[bytes, str]:
        """Return (content of this object, its tag). The tag changes with the content.

        Raises FileNotFoundError if the object does not exist.
        """
        import obstore

        with _raise_os_errors():
            result = obstore.get(self._store, self._key)
            return bytes(result.bytes()), str(result.meta["e_tag"])

    def read_range(self, start_B: int, length_B: int) -> bytes:
        """Return ``length_B`` bytes of this object from offset ``start_B``."""
        import obstore

        with _raise_os_errors():
            return bytes(obstore.get_range(self._store, self._key, start=start_B, length=length_B))

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Open this object for reading; ``mode`` must be "rb"."""
        if mode != "rb":
            raise ValueError(f"the mode is {mode!r}; an object can only be opened for reading, with 'rb'")
        return io.BufferedReader(_Reader(self), _READ_AHEAD_B)

    # Writing

    def mkdir(self, *, parents: bool = True, exist_ok: bool = True) -> None:
        """Do nothing: folders of a store exist by their objects."""

    def write_bytes(self, content: bytes) -> None:
        """Write this object, and replace an existing one."""
        self.send(content)

    def create(self, content: bytes) -> str | None:
        """Write this object if it does not exist, and return its tag (`read_version`). Return None if it exists."""
        import obstore

        try:
            with _raise_os_errors():
                return obstore.put(self._store, self._key, content, mode="create")["e_tag"]
        except FileExistsError:
            return None

    def replace_version(self, content: bytes, tag: str) -> str | None:
        """Write this object if its tag (`read_version`) is still ``tag``, and return its new tag.

        Return None if the object has been changed or removed.
        """
        import obstore
        from obstore.exceptions import PreconditionError

        try:
            with _raise_os_errors():
                return obstore.put(self._store, self._key, content, mode={"e_tag": tag})["e_tag"]
        except FileNotFoundError:
            return None
        except OSError as error:
            if isinstance(error.__cause__, PreconditionError):
                return None
            raise

    def send(self, content: bytes | IO[bytes]) -> None:
        """Write this object from bytes or an open file, and replace an existing one."""
        import obstore

        with _raise_os_errors():
            obstore.put(self._store, self._key, content)

    def replace(self, target: ObjectPath) -> ObjectPath:
        """Rename this object to ``target`` and return ``target``; replace an existing object of that name.

        The store first copies the object, and then deletes the original. An interruption leaves both.
        """
        import obstore

        with _raise_os_errors():
            obstore.copy(self._store, self._key, target._key)
            obstore.delete(self._store, self._key)
        return target

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete this object. Unless ``missing_ok``, raises FileNotFoundError if it does not exist."""
        import obstore

        if not missing_ok:
            self.stat()
        with suppress(FileNotFoundError), _raise_os_errors():
            obstore.delete(self._store, self._key)


class _Reader(io.RawIOBase):
    """An object as a file to read; each call of `readinto` is a request."""

    def __init__(self, path: ObjectPath) -> None:
        self._path, self._offset_B, self._size_B = path, 0, path.stat().st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._offset_B

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset_B, io.SEEK_END: self._size_B}[whence]
        self._offset_B = max(0, base + offset)
        return self._offset_B

    def readinto(self, buffer: Any) -> int:
        length_B = min(len(buffer), self._size_B - self._offset_B)
        if length_B <= 0:
            return 0
        content = self._path.read_range(self._offset_B, length_B)
        buffer[: len(content)] = content
        self._offset_B += len(content)
        return len(content)


@contextmanager
def _raise_os_errors() -> Iterator[None]:
    """Convert an error of obstore that is raised inside the context into an OSError with one line of text."""
    from obstore.exceptions import AlreadyExistsError, BaseError

    try:
        yield
    except AlreadyExistsError as error:
        raise FileExistsError(errno.EEXIST, _error_text(error)) from error
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise OSError(errno.EIO, _error_text(error)) from error
        raise FileNotFoundError(errno.ENOENT, "the object does not exist") from error
    except (BaseError, PermissionError) as error:
        raise OSError(errno.EIO, _error_text(error)) from error


# A part of obstore's message -> what it means, and what to do.
_REMEDIES = {
    "NoSuchBucket": "the bucket does not exist; create it, or check its name and the endpoint",
    "builder error": "the endpoint is not encrypted; set AWS_ALLOW_HTTP=true, or use an endpoint with https://",
    "169.254.169.254": "credentials are missing; set the store's environment variables, such as AWS_ACCESS_KEY_ID",
    "403 Forbidden": "access is denied; check the credentials and their rights",
}


def _error_text(error: Exception) -> str:
    """Return the message of an error of obstore in one line, or for common causes a text with a remedy."""
    text = str(error)
    remedies = [remedy for part, remedy in _REMEDIES.items() if part in text]
    return remedies[0] if remedies else text.split("\n", 1)[0].split(": <?xml", 1)[0][:300]
