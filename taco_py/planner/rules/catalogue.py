"""The rules of the planner, in order, and why each stands where it does.

A search (`plan.search`) runs the groups one after another. `EXPRESSION` and `TERM` are run for the
assignment and, before its terms are split, for each sum inside them, the innermost first.
"""

from __future__ import annotations

from collections.abc import Mapping

from taco_py.planner.rules.base import Rule, Trait
from taco_py.planner.rules.forms import (
    correct_squares,
    divide_last,
    divisor_as_factor,
    flatten_product,
    inline_statement,
    multiply_out,
    push_mask_in,
    push_sum_in,
    widen_sums,
)
from taco_py.planner.rules.kernel import (
    add_term_by_term,
    choose_way,
    fuse_epilogue,
    fuse_slab,
    fuse_temporary,
    gallop,
    inline_temporary,
    look_up_row,
    share_inside,
    share_row_scatter,
    share_scatter,
    static_short_sizes,
    stream_entries,
    widen_scatter,
)
from taco_py.planner.rules.layout import (
    cast_before,
    copy_dense_across,
    copy_into_rows,
    copy_small_across,
    dense_root,
    fuse_modes,
    locate_entries,
    order_result,
    store_temporary,
    store_zero,
    values_only,
)
from taco_py.planner.rules.needed import (
    carry_place,
    compute_once,
    count_absent,
    few_cases,
    keep_absent,
    merge_in_chunks,
    narrow_sums,
    normal_form,
    reduce_first,
    sum_in_chunks,
    take_diagonal,
)
from taco_py.planner.rules.split import (
    absorb_factor,
    contract,
    contract_many,
    hoist_sum,
    hoist_term,
    multiply_small_first,
    split_dense_product,
    sum_streamed_first,
)
from taco_py.planner.rules.tidy import (
    canonical_names,
    leave_unsorted,
    name_copies,
    share_equal_steps,
    share_units,
)

Entries = tuple[tuple[Rule, str], ...]

SINGLE: Entries = (
    (compute_once.RULE, "before all others, which would write equal values in different ways"),
    (carry_place.RULE, "after compute_once: what is compared may be a tensor only now"),
)
"""What is done to the assignments as the text has them."""

STATEMENTS: Entries = (
    *SINGLE,
    (inline_statement.RULE, "before the rest: what is planned are the assignments that are left"),
)
"""What is done to a text of several statements, before each of them is planned."""

PREPARATION: Entries = (
    (order_result.RULE, "first of all: which format the result has decides what all others gain"),
    (take_diagonal.RULE, "before all that reads indices: each access then has an index once"),
    (
        contract_many.RULE,
        "before all that looks at sums and products: it leaves one of two factors",
    ),
    (normal_form.RULE, "sums are known by the names of their indices from here on"),
    (count_absent.RULE, "after normal_form: sizes are known by the names of indices"),
    (widen_sums.RULE, "before products are looked at: factors of one type are free to move"),
    (reduce_first.RULE, "after widen_sums, which reads operands in other types; sums are left"),
    (absorb_factor.RULE, "fewer factors first: what is left is often a product of two matrices"),
    (multiply_small_first.RULE, "after absorb_factor, which leaves a product of fewer factors"),
    (copy_small_across.RULE, "after factors are multiplied: their product may need no copy"),
    (copy_dense_across.RULE, "of what is a product of two by now"),
    (fuse_modes.RULE, "after copies, which lie in the order that lets modes be fused"),
    (correct_squares.RULE, "before multiply_out, which leaves differences as they are written"),
    (multiply_out.RULE, "before anything is split: its forms are compared by how they split"),
)
"""What is done to the text as a whole."""

PROGRAM_RULES: Entries = (
    (few_cases.RULE, "first: no kernel of too many cases may even be priced"),
)
EXPRESSION: Entries = (
    (flatten_product.RULE, "one product under all its sums: the next rules look at its factors"),
    (divisor_as_factor.RULE, "before divide_last, which takes the divisors that are left"),
    (divide_last.RULE, "before sums move into factors: a divisor would hold them back"),
    (sum_streamed_first.RULE, "before push_sum_in, which would move the same sums one by one"),
    (push_mask_in.RULE, "before push_sum_in: it leaves the sum of one product"),
    (push_sum_in.RULE, "last of these: sums are where they stay when terms are split"),
)
"""What is done to each term, one rule after the other."""
TERM: Entries = (
    (hoist_sum.RULE, "after inner sums were split themselves: what they cost is known"),
    (contract.RULE, "of the product that hoisting leaves"),
)
"""What is done to one term after the other."""
REST: Entries = (
    (hoist_term.RULE, "terms that are left whole"),
    (narrow_sums.RULE, "after hoist_term, which adds up in the type of the whole"),
    (few_cases.RULE, "again: temporaries are sparse operands too"),
    (sum_in_chunks.RULE, "of the terms that one kernel is left with"),
    (merge_in_chunks.RULE, "after sum_in_chunks: sums among the arguments have few terms"),
    (split_dense_product.RULE, "of every kernel: what keeps it from register tiles is known now"),
    (store_temporary.RULE, "last: all readers of a temporary are known"),
)
"""What is done to the assignment after its terms were split."""

ABSENT: Entries = (
    (store_zero.RULE, "before keep_absent: what holds the zero need not be asked"),
    (keep_absent.RULE, "after all splits: which temporaries are dense is known"),
)
"""What is done to the assignments of the program once all are split."""

OPERANDS: Entries = (
    (values_only.RULE, "first: an operand of which values alone are read needs no other copy"),
    (dense_root.RULE, "before locate_entries: rows at hand cost less than located entries"),
    (locate_entries.RULE, "of what would still be merged"),
    (cast_before.RULE, "of what register tiles or a library will read"),
    (copy_into_rows.RULE, "last: which index has no list is known"),
)
"""What is done to the operands of each assignment before the order of its loops is chosen."""
KERNELS: Entries = (
    (choose_way.RULE, "first: what follows is about loops"),
    (look_up_row.RULE, "before gallop: a row that is looked up is not merged"),
    (gallop.RULE, "of the merges that are left"),
    (share_inside.RULE, "of the loops as they are now"),
    (share_scatter.RULE, "after share_inside: of loops whose iterations have elements in common"),
    (share_row_scatter.RULE, "after share_inside, as share_scatter: of what that leaves"),
    (widen_scatter.RULE, "after the loops are shared: of sums that stay scattered"),
    (static_short_sizes.RULE, "after choose_way: of loops alone"),
    (add_term_by_term.RULE, "last: only where no other command shapes the loops"),
)
"""What is done to each kernel once its loops are ordered."""

TIDY: Entries = (
    (name_copies.RULE, "first: a kernel on a copy is that on an operand stored so"),
    (canonical_names.RULE, "before the others: equal kernels have equal names from here on"),
    (leave_unsorted.RULE, "of kernels whose readers are all planned"),
    (share_equal_steps.RULE, "steps are as they will be carried out"),
    (fuse_epilogue.RULE, "after share_equal_steps: equal products have one epilogue"),
    (fuse_slab.RULE, "after fuse_epilogue, and before two kernels are made one at a time"),
    (fuse_temporary.RULE, "after share_equal_steps: what two kernels read is made once for both"),
    (inline_temporary.RULE, "after fuse_temporary, which leaves fewer kernels that read one"),
    (stream_entries.RULE, "after inline_temporary: of kernels that are one for all their values"),
    (canonical_names.RULE, "again: temporaries in which others are made have names of their own"),
    (share_units.RULE, "last: its commands name variables, which have their names from here on"),
)
"""What is done to the program of kernels as a whole."""

CATALOGUE: Entries = (
    *STATEMENTS, *PREPARATION, *PROGRAM_RULES, *EXPRESSION, *TERM, *REST, *ABSENT, *OPERANDS,
    *KERNELS, *TIDY,
)  # fmt: skip

NAMES: Mapping[Trait, tuple[str, ...]] = {
    trait: tuple(dict.fromkeys(rule.name for rule, _ in CATALOGUE if trait in rule.traits))
    for trait in Trait
}
"""The names of the rules that have a trait, in order."""


def names_of(*traits: Trait) -> frozenset[str]:
    """Return the names of the rules that have one of several traits at least."""
    return frozenset(name for trait in traits for name in NAMES[trait])


def _entries_of(*rules: Rule) -> Entries:
    """Return the entries of PREPARATION and REST that some rules have."""
    return tuple(entry for entry in (*PREPARATION, *REST) if entry[0] in rules)


NORMAL = _entries_of(take_diagonal.RULE, normal_form.RULE)
"""What is done to a text whose loops the user names."""
PRODUCTS = _entries_of(multiply_out.RULE)
"""What is done to a text before two ways to store its result are compared."""

REDUCTION: Entries = (
    (contract.RULE, "first: what is left of its products are steps of their own"),
)
"""What is done to a reduction by another operator than a sum."""
REDUCED = _entries_of(count_absent.RULE, reduce_first.RULE)
"""What is done to each of the steps that it is made in."""
STORED = _entries_of(store_temporary.RULE)
"""What is done to these steps together."""
