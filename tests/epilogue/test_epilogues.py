"""What is done with the elements of a product where they are made, against NumPy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.passes.order import run_passes
from codegen.target import Target
from codegen.verify import verify
from taco_py.plan.ir.parser import parse_program
from taco_py.plan.ir.plan import Plan
from taco_py.plan.ir.printer import program_text
from taco_py.ways.recipe import Recipe
from taco_py.ways.ways import way_of
from tests.epilogue.functions_of_products import EPILOGUES, operands_of

RULE = "fuse_epilogue"
