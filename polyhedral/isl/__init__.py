"""Relations between statement instances, computed by ISL. No other folder imports islpy.

Every question runs in a context with a budget of operations, and is answered in plain data or in
ISL's notation as text. Names are numbers in it (statement 0 is S0, its loops i0, i1 …, the loops of
a second instance j0, j1 …, parameters p0, p1 …), so no name of the nest can be one of ISL's words.
"""
