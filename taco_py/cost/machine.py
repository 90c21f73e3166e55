"""What operations cost on the machine, and from which amount of work on a detour pays.

The unit is a step: an iteration of an innermost loop that does not vectorise, 1 to 2 ns. Brackets
hold what `python -m benchmarks.run costs` measured, with others at work on the same two cores and
on operands that fit the caches. The two differ, for operands may be larger and a measured kernel
does more than the one operation; whether schedules are chosen well by these costs is measured by
`python -m benchmarks.run chosen`.
"""

from __future__ import annotations

STEP = 1.5e-9
"""Seconds of a step."""

# ---------------------------------------------------------------- loops, in steps

VECTOR, DENSE_VECTOR = 0.07, 0.12
"""An iteration of an innermost loop that vectorises, on arrays in the near caches: inside loops
over lists [0.02 to 0.08 of rows of 8 to 32 elements], and where all is dense [0.1 to 0.13]."""
MERGE = 2.0
"""A step of a loop that walks several sparse levels together: it is hard to foresee. [2.3]"""
LEAP = 16.0
"""How many times more entries the longer of two operands has where leaping through it pays. [The
speed of walking both, for rows of 20 000: 0.7 times at 1, 1.3 at 10, 5 at 100]"""
LEAPS, REACH = 2.9, 0.4
"""An entry that leaps through r times as many costs LEAPS · r^REACH merged steps. [2.7, 8.5, 20 and
46 for r = 1, 10, 100 and 1000]"""
SCATTER = 1.3
"""An accumulation into memory instead of a register. [0.8]"""
STRAY = 0.01
"""An iteration, for each dense array that outer loops do not run through as it is stored."""
ROW = 6.0
"""An accumulation into a row workspace, with its share of gathering the row. [4 to
10, the more the longer the rows of the result; twice that where they are sorted]"""
HASH, KEY = 10.0, 40.0
"""An accumulation into a hash workspace [5 where it is near, 30 where it is not]; and each element
of it, with its share of growing and sorting the table and of storing them in order. [31 of 90 000,
43 of 900 000, 100 to 170 of millions]"""

NEAR, LINE_BYTES = 1 << 19, 64
"""Bytes of the near caches that loops can count on, and of a line of them."""
LINE, NEXT_LINE = 1.5, 0.5
"""A line from beyond the near caches, and one right behind it. [1.8 with its step for one element
of each of 20 000 rows of 512 bytes, 0.9 with its eight elements for such rows met in any order;
1.6 to 5 for neighbours from memory]"""
CACHES, FAR_LINE = 1 << 24, 2.5
"""Bytes of the far caches that loops can count on, and what a line from beyond them costs more. [1
to 2 for rows of two lines met in any order in 20 MB, 3 to 5 for rows of eight in 44 MB]"""

# ---------------------------------------------------------------- copies and temporaries, in steps

CONVERSION, POINTER = 10.0, 1.0
"""An entry of a matrix that is transposed [5 where there are 40 000, 9 of a million, 22 of 5
million], and each of the rows that it has then [0.7 of 100 000, 1.3 of 16 million]."""
SORTING = 35.0
"""An entry of a coordinate list, or of a tensor of three or more modes, that is copied into another
order: its coordinates are sorted. [16 for a list in the caches, 25 to 37 for more]"""
FOLDING = 5.0
"""An entry of a coordinate list that is copied in its own order. [4 to 7]"""
TEMPORARY, DENSE_TEMPORARY = 4.0, 0.5
"""An element of a sparse temporary, written and read again [2 for writing], and of a dense one,
beside the loops that write and read it."""
LOOKED_UP_ROW = 2.0
"""A row, empty or not, of a copy in CSR of a matrix that stores no empty rows. [9 with the ten
entries of the row]"""
UNFORESEEN = 12.0
"""Asking whether an entry is there, times the rarer answer's share. [6: 0.8 in all where 5 of a
hundred are there, 3.4 to 4.4 where half are; it is weighed against transposed copies, which in the
caches take less than CONVERSION: 2 to 3 of 200 000 entries]"""
LOOKED_UP, ENTERED, BEGUN = 0.7, 3.0, 3.0
"""Asking whether an entry is in a row workspace, where most are not; an entry that is written
there, and taken out again [2 to 4]; and a loop that asks for few."""
FULL, DENSE_SIZE = 0.7, 1 << 24
"""The expected share of stored elements from which a temporary of at most so many is dense. [Made
by one product and read by another in 0.6 to 0.7 of CSR's time where 0.9 are stored, in 0.1 to 0.4
with a dense factor; in 1.3 and 0.4 to 0.5 of it where 0.4 are]"""
GATHERED, GATHERED_SIZE = 0.1, 1 << 22
"""The expected share of stored elements from which a result of at most so many with dense inner
levels is made as an array where it is met out of order, and its blocks are gathered."""
CLEARING, MARKING, PLACING, GATHERING = 0.2, 3.5, 3.0, 0.5
"""Each element of such an array; an entry that says which block is stored; a block that is; and
each element of it. [0.2, 3.5, 3 and 0.4 to 0.6 of an array of 20 MB, half of whose blocks of ten
are stored]"""
GAIN, DENSE_GAIN = 1.5, 1.25
"""How many times cheaper a detour must be: a temporary, or a copy that is not necessary; and a
dense temporary, whose size is known."""

# ---------------------------------------------------------------- formats

SPARSE_ROWS = 0.1
"""Entries a row below which the copy of a coordinate list is stored without its empty rows."""
VAST, FAR = 24, 6
"""The bits of a size above which an array of that length is too much for few entries, and by how
many bits they must be fewer."""

# ---------------------------------------------------------------- threads

PARALLEL = 30_000
"""Innermost iterations, of about a nanosecond each, from which threads are worth waking: a parallel
region costs 1 µs when the last one ended less than 3 ms ago, 25 µs later on. For two threads that
is 2 500 iterations and 30 000 to 50 000 that pay; between them little is lost either way."""

# ---------------------------------------------------------------- dense products, in seconds

RATE = 1.5e10
"""Products of doubles a second; twice as many of floats."""
MEMORY = 1e10
"""Bytes a second."""
LARGE, LOSS = 2e9, 1.06
"""Products from which on generated code takes LOSS times as long as the library."""
NARROW, NARROW_LOSS = 64, 1.12
"""Columns or depth up to which the library takes NARROW_LOSS times as long as generated code."""
COMPLEX_LOSS = 6.0
"""How much longer loops over complex numbers take than the library's products of them."""
COMPILING, CALLS = 0.6, 3e4
"""Seconds of compiling a product, and the calls that share them."""
CALL, LIBRARY_CALL, EACH = 1e-6, 8e-6, 2e-6
"""Seconds of a call to generated code, to a library, and of each matrix after that."""
NEIGHBOURS, RUN, ACROSS_LANES = 2.2e-11, 1e-9, 3e-9
"""Of loops whose innermost one runs along neighbours: a byte of each product; each time that it
runs; and where it is a sum, adding up the lanes. [0.09 ns a product of floats, 0.17 of doubles;
rows of 9 and 25 terms 4.5 and 5.2 ns]"""
STRIDES, FAR_STRIDES = 4e-10, 2e-9
"""A product in loops where the innermost one strides through an array, and what it takes more where
that is beyond the near caches. [0.3 to 0.5 ns; 2.3 to 2.6 ns]"""
TILED, PACKED, STRIDED, MATRICES = 5e-12, 3e-10, 8e-10, 1e-7
"""Of register tiles: a byte of each product, an element whose matrix is read along neighbours and
of one that is not, and each step of a batch. [0.02 ns a product of floats; 0.31 to 0.35 and 0.6 to
0.95 ns an element]"""
COPIED, FAR_COPIED, COPY = 1e-9, 1.6e-9, 4e-6
"""An element of a dense array copied in another order, one of an array beyond the near caches, and
the call. [0.3 to 1.1 ns; 0.8 to 1.7 ns]"""
REUSE = 1.3
"""Products for each element of the operands and the result from which on tiles pay."""
APART, APART_REUSE = 4e6, 8
"""Products, and products for each element, from which on a factor of a dense product and what is
added to it are worth kernels of their own. [Matrices of 64: 10 us together, 20 apart; of 96: 39,
33; of 128: 55, 31; of 256: 610, 175. Batches with a reuse of 4: 0.8 times the speed; of 8: 0.95 to
3 times]"""
WORTH_COMPILING = 1e5
"""Products from which on tiles, which take a second more to compile, have saved that after some
10,000 calls."""
