"""Answers of processes that crash, hang, or tell what they were asked."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any


def answer(head: Mapping[str, Any], _: Sequence[Any]) -> tuple[Mapping[str, Any], Sequence[Any]]:
    """What a plan's text says: "crash", "crash late", "hang", else it takes turns."""
    text = head.get("text", "")
    if head["do"] == "first" and text == "crash":
        os._exit(3)
    if head["do"] == "time" and text == "crash late":
        os._exit(4)
    if text == "hang" and head["do"] == "first":
        time.sleep(60)
    if head["do"] == "open" and head["path"] == "refuse":
        raise ValueError("this cannot be read")
    rival = 1e-3 if head.get("rival") else None
    return {"result": "ok", "seconds": 5e-4, "trials": 3, "rival": rival}, ()
