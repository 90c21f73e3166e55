"""What a word may have meant: the nearest of the words that were possible."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Find the word that differs least from `word`, or only in its case; None for none near.

    >>> nearest("fromat", ["format", "out"]), nearest("a", ["A", "b"]), nearest("q", ["A"])
    ('format', 'A', None)
    """
    from difflib import get_close_matches  # takes a while to load, and errors alone ask for it

    known = list(dict.fromkeys(words))
    same = [each for each in known if each.lower() == word.lower() and each != word]
    close = same or get_close_matches(word, [each for each in known if each != word], 1)
    return close[0] if close else None


def nearest_of(word: str, words: Iterable[str], count: int = 3) -> list[str]:
    """Find some words that differ little from `word`, the nearest first.

    >>> nearest_of("arctan", ["atan", "tan", "exp"])
    ['atan', 'tan']
    """
    from difflib import get_close_matches

    found = nearest(word, words := tuple(dict.fromkeys(words)))
    others = get_close_matches(word, [each for each in words if each not in (word, found)], count)
    return [] if found is None else [found, *others][:count]


def with_suggestion(hint: str, word: str, words: Iterable[str]) -> str:
    """Put the nearest word before a hint, where there is one.

    >>> with_suggestion("pass it by name", "xs", ["x", "y"])
    'did you mean x? pass it by name'
    """
    found = nearest(word, words)
    return hint if found is None else f"did you mean {found}? {hint}"
