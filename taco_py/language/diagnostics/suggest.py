"""Suggestions for misspelt words: the nearest valid word."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Find the word that differs least from `word`, or only in case; None without a near one.

    >>> nearest("fromat", ["format", "out"]), nearest("a", ["A", "b"]), nearest("q", ["A"])
    ('format', 'A', None)
    """
    from difflib import get_close_matches  # slow to import, and needed by errors alone

    different = [candidate for candidate in dict.fromkeys(words) if candidate != word]
    same = [candidate for candidate in different if candidate.lower() == word.lower()]
    close = same or get_close_matches(word, different, 1)
    return close[0] if close else None


def nearest_of(word: str, words: Iterable[str], count: int = 3) -> list[str]:
    """Find some words that differ little from `word`, the nearest first.

    >>> nearest_of("arctan", ["atan", "tan", "exp"])
    ['atan', 'tan']
    """
    from difflib import get_close_matches

    best = nearest(word, words := tuple(dict.fromkeys(words)))
    more = get_close_matches(
        word, [candidate for candidate in words if candidate not in (word, best)], count
    )
    return [] if best is None else [best, *more][:count]


def with_suggestion(hint: str, word: str, words: Iterable[str]) -> str:
    """Put the nearest word before a hint, if any.

    >>> with_suggestion("pass it by name", "xs", ["x", "y"])
    'did you mean x? pass it by name'
    """
    suggestion = nearest(word, words)
    return hint if suggestion is None else f"did you mean {suggestion}? {hint}"
