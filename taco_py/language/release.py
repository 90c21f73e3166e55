"""The version of this library, for what is kept beyond a process."""

from __future__ import annotations

VERSION = "0.2.0"
