"""Affine loop nests: dependences, legal orders, tiles, and the way back to loops (through ISL).

    nest = model.nest(model.statement("S", "i in 0..N, j in 0..N", "y[i] +=; A[i,j]; x[j]"))
    plan = plan.plan_tiles(plan.Question(nest, ("i", "j"), Cache(1 << 20)))
    loops = to_loops.to_loops(nest, plan.schedule(nest), bodies)

Importing it, or any of its modules, does not load ISL; the first question to it does.
"""
