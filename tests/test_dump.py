"""Plans and C of the corpus are those of the golden files, and take no more searches."""

from __future__ import annotations

import pytest

from tests.dump import GOLDEN, GROUPS, answers

LOOK = (
    "`python -m tests.dump FOLDER` writes the plans as text: run it before and after the change, "
    "compare, and where every difference is meant, run it again with --golden"
)


@pytest.mark.parametrize("group", GROUPS)
def test_plans_and_sources_are_as_before(group: str, update_golden: bool) -> None:
    found = [answer.line for answer in answers(group)]
    golden = GOLDEN / f"{group}.txt"
    if update_golden:
        golden.write_text("\n".join(found) + "\n")
        return
    before = golden.read_text().splitlines()
    assert len(found) == len(before), LOOK
    changed = [new for new, old in zip(found, before, strict=True) if new != old]
    assert not changed, "\n".join((f"{len(changed)} of {len(found)} differ:", *changed[:20], LOOK))
