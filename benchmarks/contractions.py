"""How fast are dense contractions of order 3 to 5 against `numpy.einsum(optimize=True)` and
`opt_einsum`?

`pure` is `numpy.matmul` of matrices with the same numbers of rows, columns and depth, in order
already: what a contraction without any copy of its operands could reach. Set OPENBLAS_NUM_THREADS
to 1, or to 2 for two threads on both sides. Our code is measured alone, and as it is called by
default, where a library's product of matrices is among the candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

import taco_py as tp
from benchmarks.gemm import threads
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records
from benchmarks.peers import library


@dataclass(frozen=True, slots=True)
class Contraction:
    """An einsum and the sizes of its indices."""

    text: str
    sizes: dict[str, int]

    @property
    def terms(self) -> tuple[list[str], str]:
        left, result = self.text.split("->")
        return left.split(","), result

    def operands(self) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        return [rng.random([self.sizes[i] for i in term]) for term in self.terms[0]]

    def matrices(self) -> tuple[int, int, int, int] | None:
        """Batch, rows, columns and depth of a product of two operands; None for other numbers."""
        operands, result = self.terms
        if len(operands) != 2:
            return None
        a, b = (set(term) for term in operands)
        classes = (a & b & set(result), (a - b) & set(result), (b - a) & set(result), a & b)
        sizes = [prod(self.sizes[i] for i in indices) for indices in classes]
        depth = prod(self.sizes[i] for i in classes[3] - classes[0])
        return sizes[0], sizes[1], sizes[2], depth


def _all(indices: str, size: int) -> dict[str, int]:
    return dict.fromkeys(indices, size)


CONTRACTIONS = (
    Contraction("aebf,dfce->abcd", _all("abcdef", 24)),
    Contraction("aebf,fdec->abcd", _all("abcdef", 24)),
    Contraction("abcd,cdef->abef", _all("abcdef", 24)),
    Contraction("abij,icjd->abcd", _all("abcdij", 24)),
    Contraction("abc,dca->bd", {"a": 64, "b": 200, "c": 64, "d": 200}),
    Contraction("abcde,efbad->cf", {"a": 12, "b": 12, "c": 64, "d": 48, "e": 24, "f": 64}),
    Contraction("bhqd,bhkd->bhqk", {"b": 2, "h": 8, "q": 512, "k": 512, "d": 64}),
    Contraction("bhqk,bhkd->bhqd", {"b": 2, "h": 8, "q": 512, "k": 512, "d": 64}),
    Contraction("bqhd,bkhd->bhqk", {"b": 2, "h": 8, "q": 256, "k": 256, "d": 64}),
    Contraction("ijk,kr->ijr", {"i": 120, "j": 120, "k": 120, "r": 32}),
    Contraction("ijk,jr->irk", {"i": 120, "j": 120, "k": 120, "r": 32}),
    Contraction("ijk,ir->rjk", {"i": 120, "j": 120, "k": 120, "r": 32}),
    Contraction("ijk,jr,kr->ir", {"i": 150, "j": 150, "k": 150, "r": 32}),
    Contraction("ijk,ja,ka->i", {"i": 150, "j": 150, "k": 150, "a": 32}),
    Contraction("ij,jk,kl->il", {"i": 400, "j": 300, "k": 300, "l": 200}),
    Contraction("ij,jk,kl,lm->im", {"i": 300, "j": 400, "k": 50, "l": 400, "m": 300}),
    Contraction("pi,qj,rk,ijk->pqr", {"p": 60, "q": 60, "r": 60, "i": 60, "j": 60, "k": 60}),
    Contraction("i,j,k->ijk", _all("ijk", 160)),
    Contraction("ijk->ki", {"i": 160, "j": 160, "k": 160}),
    Contraction("bi,bj->bij", {"b": 2000, "i": 40, "j": 40}),
    Contraction("ij,jk->ki", {"i": 500, "j": 500, "k": 500}),
    Contraction("c,dcab->", {"a": 400, "b": 4, "c": 8, "d": 64}),
    Contraction("d,dcb->bcd", {"b": 100, "c": 40, "d": 64}),
    Contraction("bdca,db->adc", {"a": 16, "b": 16, "c": 100, "d": 24}),
    Contraction("cbad->dac", {"a": 24, "b": 200, "c": 64, "d": 64}),
    Contraction("dab,c->", {"a": 400, "b": 4, "c": 100, "d": 400}),
    Contraction("bca,da->bcad", {"a": 64, "b": 100, "c": 40, "d": 8}),
)


def run() -> Iterator[Record]:
    return records("contractions", contests())


def contests() -> Iterator[Contest]:
    opt_einsum = library("opt_einsum")
    for contraction in CONTRACTIONS:
        text, operands = contraction.text, contraction.operands()
        contenders = {REFERENCE: partial(np.einsum, text, *operands, optimize=True)}
        ours = partial(tp.einsum, text, *operands, threads=threads())
        contenders[OURS] = partial(ours, libraries=False)
        contenders[f"{OURS}, library allowed"] = ours
        if opt_einsum is not None:
            shapes = [o.shape for o in operands]
            contenders["opt_einsum"] = partial(
                opt_einsum.contract_expression(text, *shapes), *operands
            )
        yield Contest(
            f"{text} {','.join(f'{i}={n}' for i, n in contraction.sizes.items())}", contenders
        )
