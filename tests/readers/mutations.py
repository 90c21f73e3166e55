"""What may stand in a file that nobody vouches for: texts of programs, numbers, other shapes."""

from __future__ import annotations

import json
import random
import re
from copy import deepcopy
from typing import Any

WORD = "taco_py_mark"
"""In every payload: no text that Python compiles may have it."""

NUMBERS = (
    0, 1, -1, 2, 7, 63, 64, 255, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**62, 2**63, 2**64, 10**30,
    -(2**31), -(2**63), 0.5, 1e308, -0.0, float("inf"), float("nan"),
)  # fmt: skip

NAMES = (
    "save", "load", "fromfile", "memmap", "frompyfunc", "vectorize", "os.system", "os:system",
    "lib.npyio.load", "__class__", "linalg", "testing.run_module_suite", "random_array", "O", "|O",
    "object", "V8", "M8[s]", "i4,(1000000,)f8", "class", "lambda", "None", "np", "route", "value",
    "const", "size", "slice", "np.load", "np.save", "extent", "ds", "dd:9,9", "csr_array", "",
)  # fmt: skip


def payloads(mark: str) -> tuple[str, ...]:
    """Texts that make a file where they are run, as Python, as C or in a shell."""
    made = f"open({mark!r},'w').close()"
    shell = f"__import__('os').system('touch {mark}')"
    return (
        made, shell, f"x=({made})", f"x, y={shell}", f"({made} or 1)", f"lambda: {made}",
        f"');{made};('", f'");{shell};("', f"\n{made}\n", f"x\n    {shell}", f"[{made}][0]",
        f'*/ system("touch {mark}"); /*', f'";system("touch {mark}");"', f"; touch {mark} ;",
        f"$(touch {mark})", f"#{{{made}}}", f"{{{made}}}", mark, f"{WORD}\x00", f"ü{WORD}",
        f"__import__('{WORD}')", f"{WORD}:{WORD}", WORD * 400,
    )  # fmt: skip


class Mutator:
    """Changes of what a reader takes, drawn by a seed."""

    def __init__(self, seed: int, mark: str) -> None:
        self.draw = random.Random(seed)
        self.payloads = payloads(mark)

    def text(self) -> str:
        """A text of a program, or a name that means something."""
        return self.draw.choice(self.payloads if self.draw.random() < 0.7 else NAMES)

    def number(self) -> Any:
        """A number that few expect."""
        return self.draw.choice(NUMBERS)

    # ------------------------------------------------------------ trees

    def tree(self, whole: Any, changes: int = 0) -> Any:
        """A tree of JSON with one to three changes."""
        whole = deepcopy(whole)
        for _ in range(changes or self.draw.choice((1, 1, 1, 2, 3))):
            places = [*_places(whole)]
            if not places:
                return self.leaf(whole)
            self._change(whole, *self.draw.choice(places))
        return whole

    def leaf(self, value: Any) -> Any:
        """Something in the place of a value: of its kind more often than not."""
        kind = self.draw.random()
        if isinstance(value, str) and kind < 0.6:
            joined = (self.text(), f"{value}{self.text()}", f"{self.text()}{value}")
            return self.draw.choice(joined)
        if isinstance(value, int | float) and kind < 0.5:
            return self.number()
        others = (
            self.text, self.number, lambda: None, lambda: True, list[Any], dict[str, Any],
            lambda: [value, value], lambda: {self.text(): value}, lambda: [self.text()],
            lambda: {"extent": ["value", self.text()]}, lambda: self.draw.choice(DEEP),
            lambda: str(value)[:20], lambda: {"extent": [self.text(), 1]},
        )  # fmt: skip
        return self.draw.choice(others)()

    def _change(self, whole: Any, holder: Any, key: Any) -> None:
        value = holder[key]
        kind = self.draw.random()
        if kind < 0.65:
            holder[key] = self.leaf(value)
        elif kind < 0.75:
            if isinstance(holder, dict):
                holder[self.text()] = holder.pop(key)
            else:
                holder.insert(key, deepcopy(self.draw.choice(holder)))
        elif kind < 0.85:
            del holder[key]
        elif kind < 0.95:
            other_holder, other = self.draw.choice([*_places(whole)])
            holder[key] = deepcopy(other_holder[other])
        elif isinstance(holder, list):
            self.draw.shuffle(holder)
        else:
            holder[key] = [value]

    def json(self, content: bytes) -> bytes:
        """A file of JSON: its tree changed, or its text."""
        if self.draw.random() < 0.1:
            return self.written(content)
        try:
            return deep(json.dumps(self.tree(json.loads(content)))).encode()
        except (ValueError, RecursionError):  # it was changed before
            return self.written(content)

    def lines(self, content: bytes) -> bytes:
        """A file of lines of JSON, one of them changed."""
        lines = content.splitlines()
        place = self.draw.randrange(len(lines))
        lines[place] = self.json(lines[place])
        return b"\n".join(lines) + b"\n"

    # ------------------------------------------------------------ texts and bytes

    def written(self, content: bytes) -> bytes:
        """A text with words changed, lines cut, doubled or put elsewhere."""
        text = content.decode("latin1")
        for _ in range(self.draw.choice((1, 1, 2, 3))):
            text = self._written(text)
        return text.encode("utf-8" if self.draw.random() < 0.5 else "latin1", "replace")

    def _written(self, text: str) -> str:
        words = [*re.finditer(r"[\w.+-]+|\S", text)]
        lines = text.splitlines(keepends=True)
        kind = self.draw.random()
        if kind < 0.65 and words:
            word, other = self.draw.choice(words), self.draw.choice(words)[0]
            new = self.draw.choice(
                (self.text(), str(self.number()), other, f"{word[0]}{self.text()}")
            )
            return f"{text[: word.start()]}{new}{text[word.end() :]}"
        place = self.draw.randrange(len(text) + 1)
        if kind < 0.75:
            return text[:place]
        if kind < 0.85:
            return f"{text[:place]}{self.text()}{text[place:]}"
        if lines and kind < 0.95:
            line = self.draw.choice(lines)
            lines.insert(self.draw.randrange(len(lines) + 1), line)
            return "".join(lines)
        return (
            text[:place] + "".join(chr(self.draw.randrange(256)) for _ in range(4)) + text[place:]
        )

    def binary(self, content: bytes) -> bytes:
        """Bytes flipped, cut, doubled, or with a text among them."""
        changed = bytearray(content)
        for _ in range(self.draw.choice((1, 1, 2, 4))):
            place = self.draw.randrange(len(changed) + 1)
            kind = self.draw.random()
            if kind < 0.6 and changed:
                changed[place % len(changed)] = self.draw.randrange(256)
            elif kind < 0.7:
                del changed[place:]
            elif kind < 0.85:
                text = self.text().encode("utf-8")
                changed[place : place + len(text) * self.draw.randrange(2)] = text
            else:
                changed[place:place] = changed[place : place + self.draw.randrange(64)]
        return bytes(changed)


DEEP = ("deep 60", "deep 3000")
"""What stands for lists in each other, which are written into the text alone."""


def deep(text: str) -> str:
    """A text of JSON with lists in each other where it says so."""
    for each in DEEP:
        depth = int(each.split()[1])
        text = text.replace(json.dumps(each), "[" * depth + "]" * depth)
    return text


def _places(whole: Any) -> Any:
    """Each place in a tree: what holds it, and the key there; without recursion."""
    waiting = [whole]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, dict):
            for key in holder:
                yield holder, key
                waiting.append(holder[key])
        elif isinstance(holder, list):
            for place, value in enumerate(holder):
                yield holder, place
                waiting.append(value)
