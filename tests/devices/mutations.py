"""Mistakes put into the kernels of `data/kernels.py`, with the kind of report that finds each."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.devices.reports import Fault
from tests.devices import kernels as k


@dataclass(frozen=True)
class Mutation:
    """In the text of `case`, `before` becomes `after`, which is found as `fault`."""

    what: str
    case: k.Case
    before: str
    after: str
    fault: Fault

    @property
    def text(self) -> str:
        assert self.case.text.count(self.before) >= 1, self.what
        return self.case.text.replace(self.before, self.after, 1)


_BARRIER = "__syncthreads();\n"
MUTATIONS = (
    Mutation("bound of a grid", k.SPMV_ROWS, "if (i >= n)", "if (i > n)", Fault.OUT_OF_BOUNDS),
    Mutation("end of a row", k.SPMV_ROWS, "p < pos[i + 1]", "p <= pos[i + 1]",
             Fault.OUT_OF_BOUNDS),
    Mutation("row before", k.SPMV_ROWS, "int p = pos[i]", "int p = pos[i - 1]",
             Fault.OUT_OF_BOUNDS),
    Mutation("indices swapped", k.SPMV_ROWS, "vals[p] * x[crd[p]]", "x[p] * vals[crd[p]]",
             Fault.OUT_OF_BOUNDS),
    Mutation("all lanes write", k.SPMV_WARPS, "if (lane == 0)\n", "", Fault.GLOBAL_RACE),
    Mutation("rows overlap", k.SPMV_WARPS, "(blockIdx.x * blockDim.x + threadIdx.x) / 32",
             "(blockIdx.x * 32 + threadIdx.x) / 32", Fault.GLOBAL_RACE),
    Mutation("half of the mask", k.SPMV_WARPS, "0xffffffffu, value, d", "0x0000ffffu, value, d",
             Fault.DIVERGENT_WARP),
    Mutation("shuffle in a branch", k.SPMV_WARPS, "sum = warp_sum(sum);",
             "if (lane < 16) sum = warp_sum(sum);", Fault.UNDEFINED_LANE),
    Mutation("first barrier removed", k.BLOCK_SUM, f"part[t] = sum;\n    {_BARRIER}",
             "part[t] = sum;\n", Fault.SHARED_RACE),
    Mutation("barrier of a loop removed", k.BLOCK_SUM, f"+ d];\n        {_BARRIER}", "+ d];\n",
             Fault.SHARED_RACE),
    Mutation("barrier in a branch", k.BLOCK_SUM, f"+ d];\n        {_BARRIER}",
             "+ d];\n        if (t < d) __syncthreads();\n", Fault.DIVERGENT_BARRIER),
    Mutation("atomic made plain", k.BLOCK_SUM, "atomicAdd(total, part[0])", "*total += part[0]",
             Fault.GLOBAL_RACE),
    Mutation("all threads at the end", k.BLOCK_SUM, "t + d];", "t + d + 1];", Fault.OUT_OF_BOUNDS),
    Mutation("too few threads write", k.BLOCK_SUM, "part[t] = sum;", "if (t < 127) part[t] = sum;",
             Fault.UNINITIALISED),
    Mutation("no end", k.BLOCK_SUM, "i += gridDim.x * blockDim.x", "i += gridDim.y - 1",
             Fault.HANG),
    Mutation("barrier before a tile is read", k.GEMM, ": 0.0f;\n        __syncthreads();",
             ": 0.0f;", Fault.SHARED_RACE),
    Mutation("barrier before the next tile", k.GEMM, "__syncthreads(); // before the next tile", "",
             Fault.SHARED_RACE),
    Mutation("barrier of some blocks", k.GEMM, "__syncthreads(); // before the next tile",
             "if (i < n) __syncthreads(); else __syncthreads();", Fault.DIVERGENT_BARRIER),
    Mutation("tile too short", k.GEMM, "float b[16][17]", "float b[15][17]", Fault.OUT_OF_BOUNDS),
    Mutation("bound of columns", k.GEMM, "if (i < n && j < m)", "if (i < n && j <= m)",
             Fault.GLOBAL_RACE),
    Mutation("bound of k", k.GEMM, "l + threadIdx.y < k ?", "l + threadIdx.y <= k ?",
             Fault.OUT_OF_BOUNDS),
    Mutation("bank swapped", k.SCAN, "sums[to + t] = sums[from + t]",
             "sums[from + t] = sums[to + t]", Fault.UNINITIALISED),
    Mutation("in place", k.SCAN, "sums[to + t] = sums[from + t]", "sums[from + t] = sums[from + t]",
             Fault.SHARED_RACE),
    Mutation("beyond dynamic memory", k.SCAN, "int to = blockDim.x - from",
             "int to = blockDim.x + from", Fault.OUT_OF_BOUNDS),
    Mutation("bins not cleared", k.HISTOGRAM, "bins[threadIdx.x] = 0;", ";", Fault.UNINITIALISED),
    Mutation("bins cleared late", k.HISTOGRAM, f"= 0;\n    {_BARRIER}", "= 0;\n",
             Fault.SHARED_RACE),
    Mutation("shared atomic made plain", k.HISTOGRAM, "atomicAdd(&bins[x[i]], 1u)",
             "bins[x[i]] += 1u", Fault.SHARED_RACE),
    Mutation("bins read early", k.HISTOGRAM, "1u);\n    __syncthreads();", "1u);",
             Fault.SHARED_RACE),
    Mutation("global atomic made plain", k.HISTOGRAM,
             "atomicAdd(&counts[threadIdx.x], bins[threadIdx.x])",
             "counts[threadIdx.x] += bins[threadIdx.x]", Fault.GLOBAL_RACE),
    Mutation("table looked at plainly", k.HASH, "int old = atomicCAS",
             "if (table[slot] == key) break;\n        int old = atomicCAS", Fault.GLOBAL_RACE),
    Mutation("table written plainly", k.HASH, "atomicCAS(&table[slot], 0, key);",
             "table[slot]; if (old == 0) table[slot] = key;", Fault.GLOBAL_RACE),
    Mutation("loop without a new slot", k.HASH, "slot = (slot + 1) & 63u;", "", Fault.HANG),
    Mutation("maximum written plainly", k.FLOAT_MAX, "int seen = atomicCAS((int *)place, old, "
             "__float_as_int(value));", "int seen = old; *place = value;", Fault.GLOBAL_RACE),
    Mutation("maximum read plainly", k.FLOAT_MAX, "atomicAdd((int *)place, 0)", "*(int *)place",
             Fault.GLOBAL_RACE),
    Mutation("barrier of a tile", k.TRANSPOSE, _BARRIER, "\n", Fault.SHARED_RACE),
    Mutation("warp barrier for a tile", k.TRANSPOSE, _BARRIER, "__syncwarp();\n",
             Fault.SHARED_RACE),
    Mutation("tile read the other way", k.TRANSPOSE, "tile[threadIdx.x][r];",
             "tile[r][threadIdx.x];", Fault.UNINITIALISED),
    Mutation("bound of rows", k.TRANSPOSE, "if (row + r < n &&", "if (row + r <= n &&",
             Fault.OUT_OF_BOUNDS),
    Mutation("no order of written", k.ROTATE, "__syncwarp(); // all are written\n", "\n",
             Fault.SHARED_RACE),
    Mutation("no order of read", k.ROTATE, "__syncwarp(); // all are read\n", "\n",
             Fault.SHARED_RACE),
    Mutation("no order of written again", k.ROTATE, "__syncwarp(); // all are written again\n",
             "\n", Fault.SHARED_RACE),
    Mutation("order of half of the lanes", k.ROTATE, "__syncwarp(); // all are read",
             "__syncwarp(lane < 16 ? 0xffffu : 0xffff0000u);", Fault.SHARED_RACE),
    Mutation("lanes of another warp", k.ROTATE, "lanes[warp][(lane + 1) % 32]",
             "lanes[(warp + 1) % 2][lane]", Fault.SHARED_RACE),
    Mutation("lane that has ended", k.COMPACT, "int value = i < n ? x[i] : 0;",
             "int value = i < n ? x[i] : 0; if (lane == 0) return;", Fault.UNDEFINED_LANE),
    Mutation("place not shared out", k.COMPACT, "if (lane == 0)\n        first = atomicAdd",
             "first = atomicAdd", Fault.OUT_OF_BOUNDS),
    Mutation("same place twice", k.COMPACT, "kept & ((1u << lane) - 1)",
             "kept & ((1u << lane) / 4)", Fault.GLOBAL_RACE),
    Mutation("masks swapped", k.HALVES, "(t & 16) ? 0xffff0000u : 0x0000ffffu",
             "(t & 16) ? 0x0000ffffu : 0xffff0000u", Fault.DIVERGENT_WARP),
    Mutation("mask of both", k.HALVES, "(t & 16) ? 0xffff0000u : 0x0000ffffu", "0xffffffffu",
             Fault.DIVERGENT_WARP),
    Mutation("wrong lane", k.HALVES, "value, d)", "value, 2 * d)", Fault.UNDEFINED_LANE),
    Mutation("vector at a place between", k.SCALE4, "(const float4 *)(x)",
             "(const float4 *)(x + 1)", Fault.MISALIGNED),
    Mutation("too many vectors", k.SCALE4, "if (i < n)", "if (i <= n)", Fault.OUT_OF_BOUNDS),
    Mutation("constant overrun", k.MARK, "flipped[x[i]]", "flipped[x[i] + 1]", Fault.OUT_OF_BOUNDS),
    Mutation("own array overrun", k.LARGEST, "place < 3", "place <= 3", Fault.OUT_OF_BOUNDS),
    Mutation("division by zero", k.LARGEST, "/ x[i * 8]", "/ (x[i * 8] - x[i * 8])",
             Fault.DIVISION),
    Mutation("shift by too much", k.COMPACT, "(1u << lane) - 1", "(1u << 32 - lane) - 1",
             Fault.SHIFT),
    Mutation("not known before it is counted", k.LAST_BLOCK,
             "__threadfence(); // it is known before it is counted", "", Fault.GLOBAL_RACE),
    Mutation("not known after it was counted", k.LAST_BLOCK,
             "__threadfence(); // what was counted is known", "", Fault.GLOBAL_RACE),
    Mutation("counted before it is written", k.LAST_BLOCK,
             "last = atomicAdd(count, 1u) == gridDim.x - 1;\n        __threadfence(); // what was",
             "last = true; // what was", Fault.GLOBAL_RACE),
    Mutation("counted plainly", k.LAST_BLOCK, "atomicAdd(count, 1u)", "(*count)++",
             Fault.GLOBAL_RACE),
    Mutation("not the last block", k.LAST_BLOCK, "== gridDim.x - 1", "== gridDim.x - 2",
             Fault.UNINITIALISED),
    Mutation("no barrier behind the last one", k.LAST_BLOCK,
             "    }\n    __syncthreads();\n    if (!last)", "    }\n    if (!last)",
             Fault.SHARED_RACE),
    Mutation("waits for blocks that may not run", k.CHAINED_SCAN,
             "b = __shfl_sync(0xffffffffu, b, 0);", "b = blockIdx.x;", Fault.HANG),
    Mutation("flag before the sum", k.CHAINED_SCAN,
             "sums[b] = before + sum;\n        __threadfence();\n"
             "        *(volatile int *)&flags[b] = 1;",
             "__threadfence();\n        *(volatile int *)&flags[b] = 1;\n"
             "        sums[b] = before + sum;", Fault.GLOBAL_RACE),
    Mutation("flag written plainly", k.CHAINED_SCAN, "*(volatile int *)&flags[b] = 1",
             "flags[b] = 1", Fault.GLOBAL_RACE),
    Mutation("flag not awaited", k.CHAINED_SCAN,
             "while (*(volatile int *)&flags[b - 1] == 0)\n", "", Fault.GLOBAL_RACE),
    Mutation("output read", k.MARK, "flipped[x[i]]", "flipped[x[i]] + y[i]", Fault.UNINITIALISED),
)  # fmt: skip
