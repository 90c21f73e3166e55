"""Affine loop nests: dependences, legal orders, tiles, and the way back to loops (through ISL).

    >>> from polyhedral.nests.dependence import dependences
    >>> from polyhedral.nests.tile_legality import check_order
    >>> from polyhedral.model import nest, statement
    >>> from polyhedral.programs.program_plan import plan_program
    >>> from polyhedral.programs.question import ProgramQuestion
    >>> from polyhedral.nests.tile import tile

    >>> sweeps = nest(statement("S", "t in 0..T, i in 1..N-1", "a[i] =; a[i-1]; a[i+1]"))
    >>> found = dependences(sweeps)
    >>> print(found[1])
    flow dependence S -> S on a (<=, 1)
    >>> verdict = check_order(sweeps, tile(sweeps, "ti", {"t": 4, "i": 8}), found)
    >>> print(verdict)  # doctest: +ELLIPSIS
    illegal: flow dependence S -> S on a (<, -1): S(t=2, i=8) must stay before S(t=3, i=7) ...

One loop at its place, and what is asked of a part of an order:

    >>> from polyhedral.nests.tile_legality import check_band, check_parallel
    >>> from polyhedral.band_schedule import original, permute
    >>> from polyhedral.nests.tile import strip_mine
    >>> print(check_order(sweeps, strip_mine(sweeps, "i", 8), found))
    legal: every dependence stays in order
    >>> print(check_band(sweeps, permute(sweeps, "ti"), "ti", found).answer.value)
    illegal
    >>> print(check_parallel(sweeps, original(sweeps), "i", found).answer.value)
    illegal

A whole nest, planned:

    >>> plan = plan_program(ProgramQuestion(sweeps, {"T": 100, "N": 1_000_000}))
    >>> print(plan.schedule)
    S -> [0, t/32, (i + t)/16, 0, t, 0, i, 0]
    >>> print(plan)  # doctest: +ELLIPSIS
    S: tile t, i by 32, 16
      planes: S: t, i + t
    ...

Loops of `codegen.ir`, from what makes a statement of the values of its loops:

    >>> from codegen.build import add, sub
    >>> from codegen.ir import Array, Load, Storage, Store
    >>> from codegen.pretty import pretty
    >>> from codegen.types import FLOAT64
    >>> from polyhedral.programs.program_loops import program_loops

    >>> a = Array("a", FLOAT64, Storage.OUTPUT)
    >>> def both_sides(at):
    ...     return Store(a, at["i"], add(Load(a, sub(at["i"], 1)), Load(a, add(at["i"], 1))))
    >>> plain = plan_program(ProgramQuestion(sweeps, {"T": 100, "N": 1_000_000}, tiles=()))
    >>> print(pretty(program_loops(sweeps, plain, {"S": both_sides}, {})))
    for t in 0..T:
      for i in 1..N - 1:
        a[i] = a[i - 1] + a[i + 1]

Importing it, or any of its modules, does not load ISL; the first question to it does.
"""
