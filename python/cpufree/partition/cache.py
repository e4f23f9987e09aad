"""Partitions that METIS has found, kept in a folder: the next program with the pattern reads them.

A file holds the part of each row as int32 of the machine's byte order, behind a line of JSON that
says what it is of and the CRC-32 of the parts. Its name is a digest of all that METIS's answer
depends on: the pattern, the number of parts, its version and options. A file appears when it is
complete (`cpufree.output_file`), and processes that write the same one write the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.errors import FileFormatError
from cpufree.output_file import write_file

Int32s = npt.NDArray[np.int32]

FORMAT = "cpufree partition 1"


@dataclass
class PartitionCache:
    """The partitions of one pattern in a folder, which is made when the first one is written.

    What is wrong with a file or the folder is noted and costs the time of METIS, not the solve.
    """

    folder: Path
    pattern: tuple[int, ...]
    """Rows, nonzeros, and digests of the arrays."""
    notes: list[str] = field(default_factory=list)
    """What the user should know, in sentences."""

    def read(self, pes: int, how: Mapping[str, Any]) -> Int32s | None:
        """Return the part of each row; None: there is no file, or it is damaged.

        Args:
            pes: number of parts. how: versions and options of METIS.
        """
        path = self._path(pes, how)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self.notes.append(f"the partition in {path} cannot be read ({error.strerror})")
            return None
        head, _, data = content.partition(b"\n")
        try:
            known = json.loads(head)
            sound = (known["of"], known["crc"]) == (self._of(pes, how), zlib.crc32(data))
            part = np.frombuffer(data, np.int32)
            sound = sound and part.size == self.pattern[0]
            sound = sound and bool(((part >= 0) & (part < pes)).all())
        except (ValueError, KeyError, TypeError):
            sound = False
        if not sound:
            self.notes.append(f"the partition in {path} is damaged: it is made again")
            return None
        return part

    def write(self, pes: int, how: Mapping[str, Any], part: Int32s) -> None:
        """Keep a partition for the next time."""
        path = self._path(pes, how)
        data = np.ascontiguousarray(part, np.int32).tobytes()
        head = json.dumps({"of": self._of(pes, how), "crc": zlib.crc32(data)})
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with write_file(path) as file:
                file.write(head.encode() + b"\n" + data)
        except (OSError, FileFormatError) as error:
            self.notes.append(f"the partition cannot be kept in {self.folder}: {error}")

    def _of(self, pes: int, how: Mapping[str, Any]) -> list[Any]:
        # Digests have 128 bits, more than numbers of JSON need have.
        pattern = [str(number) for number in self.pattern]
        return [FORMAT, sys.byteorder, pattern, pes, sorted(map(list, how.items()))]

    def _path(self, pes: int, how: Mapping[str, Any]) -> Path:
        name = hashlib.sha256(json.dumps(self._of(pes, how)).encode()).hexdigest()[:32]
        return self.folder / f"{name}.parts"
