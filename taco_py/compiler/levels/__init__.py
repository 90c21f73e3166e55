"""Level functions of each level kind, as generated code, one kind a file.

A level is either *located* (a coordinate gives its position: dense) or *iterated* (positions give
their coordinates: all others, and the workspaces a consumer walks). Chou et al. 2018, section 3.
"""

from taco_py.compiler.levels.compressed import Compressed
from taco_py.compiler.levels.dense import locate, locate_strided
from taco_py.compiler.levels.kinds import functions_of
from taco_py.compiler.levels.protocol import Above, Iterated, LevelStorage
from taco_py.compiler.levels.singleton import Singleton

__all__ = [
    "Above", "Compressed", "Iterated", "LevelStorage", "Singleton", "functions_of", "locate",
    "locate_strided",
]  # fmt: skip
