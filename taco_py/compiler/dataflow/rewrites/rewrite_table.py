"""The rewrites of dataflow graphs, in the order in which they are tried."""

from __future__ import annotations

from taco_py.compiler.dataflow.rewrites import (
    drop_unread,
    forward_store,
    keep_value,
    narrow_buffer,
    recompute,
    share_load,
    share_map,
    share_pass,
    stream_store,
)
from taco_py.compiler.dataflow.rewrites.rewrite import Rewrite

REWRITES: tuple[Rewrite, ...] = (
    share_map.REWRITE,
    narrow_buffer.REWRITE,
    keep_value.REWRITE,
    share_pass.REWRITE,
    forward_store.REWRITE,
    share_load.REWRITE,
    drop_unread.REWRITE,
    recompute.REWRITE,
    stream_store.REWRITE,
)
"""Maps first, for what is nearer depends on them; stores past the caches last."""
