"""The version of this library, for data that outlives a process."""

from __future__ import annotations

VERSION = "0.2.0"
