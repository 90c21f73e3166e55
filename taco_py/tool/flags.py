"""Flags of the command-line tool, which are those of TACO's where they make sense.

    taco-py "y(i) = A(i,j) * x(j)" -f=A:ds -s="split(i,i0,i1,32)" -print-concrete

A flag begins with one or two dashes and has its value behind an equals sign; most can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from textwrap import wrap

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import TacoError


class UsageError(TacoError, ValueError):
    """The command line is not what the tool takes."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag: what stands behind its equals sign, "" for nothing, and what it does."""

    value: str
    help: str
    optional: bool = False  # whether the value may be left out


FLAGS: dict[str, Flag] = {
    "f": Flag(
        "<tensor>:<format>",
        "The format of a tensor, a letter a level: d dense, s compressed, u compressed with "
        "duplicates, c singleton, q singleton with duplicates; then perhaps the order of modes. "
        "All formats default to dense. Examples: A:ds (CSR), B:ds:1,0 (CSC), D:sss.",
    ),
    "t": Flag("<tensor>:<type>", "The type of a tensor's values: double (default), float, int …"),
    "d": Flag(
        "<index or tensor>:<sizes>",
        "Sizes, of an index or of a tensor's modes, 42 where nothing says. Examples: i:5, A:10,10.",
    ),
    "s": Flag("<commands>", "Scheduling commands, such as split(i,i0,i1,16), reorder(i0,j,i1)."),
    "i": Flag("<tensor>:<file>", "Read a tensor from a file (.tns .mtx .npz, also .gz)."),
    "g": Flag(
        "<tensor>:<fill>",
        "Make a tensor up: d or u or r all values, s 7 %, h 0.5 % of them, or a number from 0 to "
        "1. Dense operands without -i or -g get all values where data is needed.",
    ),
    "o": Flag("<tensor>:<file>", "Write a tensor to a file (.tns .mtx, also .gz), or to several."),
    "O": Flag("<folder>", "Write all tensors to a folder as .tns files.", optional=True),
    "cuda": Flag(
        "emulated",
        "Kernels for a GPU, in CUDA: they are printed and written, and computed with on the first "
        "GPU, or on the CPU by -cuda=emulated, which checks each access to memory.",
        optional=True,
    ),
    "c": Flag("", "Assemble and compute in one function, as print-evaluate."),
    "print-compute": Flag("", "Print the function that computes values for a known structure."),
    "print-assembly": Flag("", "Print the function that makes the result's structure."),
    "print-evaluate": Flag("", "Print the function that does both (default)."),
    "print-kernels": Flag("", "Print all functions."),
    "print-concrete": Flag("", "Print the concrete index notation."),
    "print-iteration-graph": Flag("", "Print the provenance graph and the iteration graph."),
    "print-schedule": Flag("", "Print what ran as scheduling commands."),
    "print-nocolor": Flag("", "Nothing: there are no colours."),
    "explain": Flag("", "Print everything that was chosen, and why."),
    "write-source": Flag("<file>", "Write all functions to a file."),
    "write-compute": Flag("<file>", "Write the computing function to a file."),
    "write-assembly": Flag("<file>", "Write the assembling function to a file."),
    "write-graph": Flag("<file>", "Write both graphs to a file as SVG."),
    "export": Flag(
        "<folder>", "Write C or CUDA files with a header and a program that calls them."
    ),
    "time": Flag("<repeat>", "Time compilation and <repeat> computations (1).", optional=True),
    "write-time": Flag("<file>", "Write times as compile,mean,stdev,median in ms to a file."),
    "verify": Flag("", "Compare the result with a dense evaluation, for small sizes."),
    "nthreads": Flag("<number>", "So many threads at most."),
    "memory-limit": Flag("<size>", "Refuse what takes more memory at once, as in 2GB or 512MiB."),
    "prefix": Flag("<prefix>", "What the names of functions begin with."),
    "help": Flag("", "Print this; -help=scheduling prints the scheduling commands.", optional=True),
    "version": Flag("", "Print the version."),
}


@dataclass(frozen=True, slots=True)
class CommandLine:
    """An expression, and the values of each flag in order."""

    text: str
    values: Mapping[str, tuple[str, ...]]

    def has(self, *flags: str) -> bool:
        return any(flag in self.values for flag in flags)

    def all(self, flag: str) -> tuple[str, ...]:
        return self.values.get(flag, ())

    def last(self, flag: str) -> str:
        """Return the value that was given last, "" for none."""
        return self.values.get(flag, ("",))[-1]

    def values_of(self, flag: str) -> dict[str, str]:
        """Return `<name>:<value>` as a mapping. Raises UsageError, also for a name that is
        repeated."""
        values: dict[str, str] = {}
        for name, value in self.pairs(flag):
            if name in values:
                raise UsageError(
                    f"Expected one -{flag} for {name}, found {values[name]} and {value}"
                )
            values[name] = value
        return values

    def pairs(self, flag: str) -> Iterator[tuple[str, str]]:
        """Yield each `<name>:<value>`. Raises UsageError."""
        for value in self.all(flag):
            name, colon, rest = value.partition(":")
            if not (name.strip() and colon and rest.strip()):
                raise UsageError(f"Expected -{flag}={FLAGS[flag].value}, found -{flag}={value}")
            yield name.strip(), rest.strip()

    def count(self, flag: str, default: int | None) -> int | None:
        """Return a positive number. Raises UsageError."""
        text = self.last(flag)
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and 1 <= int(text) < 10**6):
            raise UsageError(f"Expected a positive number for -{flag}, found {text}")
        return int(text)


def parse_flags(arguments: Sequence[str]) -> CommandLine:
    """Return the command line. Raises UsageError."""
    texts: list[str] = []
    values: dict[str, tuple[str, ...]] = {}
    for argument in arguments:
        if not argument.startswith("-"):
            texts.append(argument)
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        check_flag(name, bool(equals), value)
        values[name] = (*values.get(name, ()), value)
    if len(texts) > 1:
        raise UsageError(
            f"Expected one expression, found {len(texts)}: {', '.join(map(repr, texts))}",
            hint="put it in quotation marks",
        )
    if not texts and not {"help", "version"} & set(values):
        raise UsageError("Expected an expression, found none", hint="taco-py -help lists all flags")
    return CommandLine("".join(texts), values)


def check_flag(name: str, has_value: bool, value: str) -> None:
    """Raise UsageError unless there is such a flag and it takes such a value."""
    if name not in FLAGS:
        close = get_close_matches(name, FLAGS, 1)
        hint = f"did you mean -{close[0]}?" if close else "taco-py -help lists all flags"
        raise UsageError(f"Expected a flag of taco-py, found -{name}", hint=hint)
    flag = FLAGS[name]
    if has_value and not (flag.value or flag.optional):
        raise UsageError(f"Expected -{name} without a value, found -{name}={value}")
    if flag.value and not value and not flag.optional:
        raise UsageError(f"Expected -{name}={flag.value}, found no value")


def help_text() -> str:
    """Return the text that -help prints."""
    return "\n".join(
        (
            "usage: taco-py <expression> [flags]",
            "       taco-py demo [file.mtx|file.tns]",
            "",
            '  taco-py "a(i) = b(i) + c(i)" -f=b:s -f=c:s -f=a:s              sparse vectors',
            '  taco-py "y(i) = A(i,j) * x(j)" -f=A:ds -print-concrete         SpMV',
            '  taco-py "y(i) = A(i,j) * x(j)" -f=A:ds -i=A:A.mtx -o=y:y.tns -time=10',
            "",
            *_flag_lines(),
        )
    )


def _flag_lines() -> Iterator[str]:
    for name, flag in FLAGS.items():
        head = f"  -{name}" + (f"={flag.value}" if flag.value else "")
        first, *rest = wrap(flag.help, 66)
        yield f"{head:<32}{first}" if len(head) < 32 else head
        yield from (f"{'':<32}{line}" for line in (rest if len(head) < 32 else (first, *rest)))
