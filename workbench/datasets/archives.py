"""Compressed logs: gzip and Zstandard archives, decompressed while they are read.

An archive is recognized by its first bytes or by its suffix (.gz, .zst). gzip stores a checksum of the content, so
every changed byte is detected. The checksum of Zstandard is optional: the command ``zstd`` stores it, some libraries
do not.
"""

from __future__ import annotations

import os
from pathlib import PurePath

import pyarrow as pa

from workbench.locations import open_binary

_BLOCK_B = 1 << 16  # bytes before a damaged place that are lost at most
# Bytes at the beginning -> codec, which is also the name of the command that decompresses the archive.
_BEGINNINGS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_SUFFIXES = {".gz": "gzip", ".zst": "zstd"}
_CUT_SHORT = "Truncated"  # in the message of `pyarrow` for an archive without its end


def codec_of(path: str | os.PathLike[str]) -> str | None:
    """Return "gzip", "zstd", or None if the file is not compressed. Raises OSError if the file cannot be read."""
    with open_binary(path) as file:
        beginning = file.read(max(map(len, _BEGINNINGS)))
    recognized = [codec for first_bytes, codec in _BEGINNINGS.items() if beginning.startswith(first_bytes)]
    return recognized[0] if recognized else _SUFFIXES.get(PurePath(path).suffix.lower())


class Archive:
    """A compressed file that is read from beginning to end."""

    def __init__(self, path: str | os.PathLike[str], codec: str) -> None:
        self._name, self._codec = os.fspath(path), codec
        self._file = pa.PythonFile(open_binary(path), "r")
        self._stream = pa.CompressedInputStream(self._file, codec)
        self._error: OSError | None = None

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stream.close()
        self._file.close()

    def read(self, size_B: int) -> bytes:
        """Return the next ``size_B`` bytes of the decompressed content, fewer at its end, and b"" after its end.

        If damaged bytes follow, the bytes before them are returned, and the next call raises OSError. If the damage
        begins at once, this call raises OSError.
        """
        if self._error is not None:
            raise self._error
        blocks: list[bytes] = []
        try:
            while size_B > 0 and (block := self._stream.read(min(size_B, _BLOCK_B))):
                blocks.append(block)
                size_B -= len(block)
        except OSError as error:
            if not blocks:
                raise
            self._error = error
        return b"".join(blocks)

    def tell(self) -> int:
        """Return the number of compressed bytes read so far."""
        return self._file.tell()

    def damage(self, error: OSError, lines: int) -> str:
        """Return an error message for a damaged archive: where the damage is, and how to recover the lines before it.

        ``error`` is the error that `read` raised, and ``lines`` the number of complete lines that it had returned
        before.
        """
        if not lines and _CUT_SHORT not in str(error):
            return (
                f"{self._name!r} is not a {self._codec} archive, or its beginning is damaged ({error}); copy it again, "
                f"or remove the suffix if the file is not compressed"
            )
        state = (
            f"is cut short; {f'at least its first {lines:,} lines are' if lines else 'no line is known to be'} complete"
            if _CUT_SHORT in str(error)
            else f"is damaged after line {lines:,}, or before it ({error})"
        )
        return f"{self._name!r} {state}; copy it again, or read what `{self._codec} -dc FILE > NEW_FILE` recovers"
