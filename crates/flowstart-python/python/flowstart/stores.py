"""Where the parts of a study are: a folder, or wherever fsspec can write."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import stat
import time
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

#: Protocols of stores in which an object appears when all of it is there. Elsewhere a file grows under its name.
OBJECTS = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory"}
#: A file that is being written: the one that it becomes, when that began in nanoseconds, and what nobody else has.
SCRATCH = re.compile(r"_.+\.(?:parquet|json|toml)\.([0-9]+)\.[0-9a-f]+")
#: Seconds after which it was left by somebody who was killed: a part is written in seconds, and clocks may differ.
ABANDONED = 600


class SweepError(ValueError):
    """A sweep that cannot be made as it was asked for."""


class File(NamedTuple):
    """A file of a store."""

    name: str
    #: Bytes, where the store says it.
    size: int | None
    #: Whether it is neither a folder, a link, a pipe nor a device.
    plain: bool


class Store:
    """Files in a folder, or wherever fsspec can write: a URL such as s3://bucket/folder."""

    def __init__(self, url: str) -> None:
        self.url = url
        #: The URL for messages, without a password.
        self.name = re.sub(r"://[^/@]*@", "://", url)
        self._files: Any = None
        self._appear_whole = False
        if "://" not in url:
            self._path = url
            return
        try:
            fsspec: Any = importlib.import_module("fsspec")
        except ImportError as error:
            raise SweepError(f"store `{self.name}`: a URL needs fsspec: pip install fsspec") from error
        try:
            self._files, self._path = fsspec.core.url_to_fs(url)
        except (ImportError, OSError, ValueError) as error:
            raise SweepError(f"store `{self.name}`: {error}") from error
        # One name or several.
        protocol = self._files.protocol
        protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        if "file" in protocols:
            self._files = None
        self._appear_whole = not protocols.isdisjoint(OBJECTS)

    def of_this_thread(self) -> Store:
        """The same store for another thread: connections of FTP and SFTP are for one each, and fsspec keeps them."""
        return self if self._files is None else Store(self.url)

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        return Store, (self.url,)

    def _at(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"

    def prepare(self) -> None:
        """Makes the folder."""
        with self._refused():
            if self._files is None:
                os.makedirs(self._path, exist_ok=True)
            else:
                self._files.makedirs(self._path, exist_ok=True)

    @contextlib.contextmanager
    def _refused(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ImportError) as error:
            raise SweepError(f"store `{self.name}`: {error or type(error).__name__}") from error
        except Exception as error:
            # Stores of a network raise what their libraries have.
            if self._files is None or isinstance(error, SweepError):
                raise
            raise SweepError(f"store `{self.name}`: {type(error).__name__}: {error}") from error

    def files(self) -> Iterator[File]:
        """All files."""
        with self._refused():
            if self._files is None:
                with os.scandir(self._path) as found:
                    for entry in found:
                        # Others remove theirs meanwhile.
                        with contextlib.suppress(FileNotFoundError):
                            known = entry.stat(follow_symlinks=False)
                            yield File(entry.name, known.st_size, stat.S_ISREG(known.st_mode))
                return
            self._files.invalidate_cache()
            try:
                entries = self._files.ls(self._path, detail=True)
            except FileNotFoundError:
                # A folder of objects is there with its first object.
                return
            for entry in entries:
                name = entry["name"].rstrip("/").rsplit("/", 1)[-1]
                yield File(name, entry.get("size"), entry.get("type", "file") == "file")

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """A file of at most so many bytes; None if it is not there."""
        with self._refused():
            try:
                if most is not None and (self._size(name) or 0) > most:
                    raise SweepError(f"store `{self.name}`: {name} is longer than {most} bytes")
                if self._files is not None:
                    return bytes(self._files.cat_file(self._at(name)))
                with open(self._at(name), "rb", opener=_at_once) as file:
                    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                        raise SweepError(f"store `{self.name}`: {name} is not a file")
                    return file.read()
            except FileNotFoundError:
                return None

    def _size(self, name: str) -> int | None:
        if self._files is None:
            return os.stat(self._at(name)).st_size
        size: int | None = self._files.size(self._at(name))
        return size

    def write(self, name: str, content: bytes) -> None:
        """Writes a file whole or not at all."""
        with self._refused():
            if self._appear_whole:
                self._files.pipe_file(self._at(name), content)
                return
            with self._scratch(name, content) as scratch:
                if self._files is None:
                    os.replace(scratch, self._at(name))
                    return
                try:
                    self._files.mv(scratch, self._at(name))
                except Exception:
                    # Not every server renames onto a file that is there. Two workers may write the same part.
                    with contextlib.suppress(FileNotFoundError):
                        self._files.rm(self._at(name))
                    self._files.mv(scratch, self._at(name))

    def create(self, name: str, content: bytes) -> bool:
        """Writes a file if there is none, and returns whether it did."""
        with self._refused():
            try:
                if self._files is None:
                    self._link(name, content)
                else:
                    self._files.pipe_file(self._at(name), content, mode="create")
            except FileExistsError:
                return False
            except Exception:
                # A store that does not know such a request; if it has another reason, it says it again.
                if self._files is None:
                    raise
                if self.read(name) is not None:
                    return False
                self._files.pipe_file(self._at(name), content)
        # Not every store refuses the second of two that write at once; then the last one's stays.
        return self.read(name) == content

    def _link(self, name: str, content: bytes) -> None:
        with self._scratch(name, content) as scratch:
            try:
                os.link(scratch, self._at(name))
            except FileExistsError:
                raise
            except OSError:
                # A file system without links.
                with open(self._at(name), "xb") as file:
                    file.write(content)
            os.unlink(scratch)

    @contextlib.contextmanager
    def _scratch(self, name: str, content: bytes) -> Iterator[str]:
        """A file with this content under another name; gone when it cannot have its own."""
        # Two workers may write the same part at once.
        scratch = self._at(f"_{name}.{time.time_ns()}.{uuid.uuid4().hex}")
        try:
            if self._files is None:
                with open(scratch, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            else:
                self._files.pipe_file(scratch, content)
            yield scratch
        except BaseException:
            with contextlib.suppress(Exception):
                self._remove(scratch)
            raise

    def _remove(self, path: str) -> None:
        if self._files is None:
            os.unlink(path)
        else:
            self._files.rm(path)

    def remove(self, name: str) -> None:
        """Removes a file, which may be gone already."""
        with self._refused(), contextlib.suppress(FileNotFoundError):
            self._remove(self._at(name))


def abandoned(name: str) -> bool:
    """Whether a file of this name was being written by somebody who was killed."""
    began = SCRATCH.fullmatch(name)
    return began is not None and time.time() - int(began[1]) / 1e9 > ABANDONED


def _at_once(path: str, flags: int) -> int:
    # A pipe would keep its reader waiting for ever.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
