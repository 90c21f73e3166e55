"""The binsparse protocol: a JSON-like descriptor, and arrays by name (version 0.1 of the format).

    T.__binsparse_descriptor__()   {"binsparse": {"version": "0.1", "format": "CSR", "shape": …}}
    T.__binsparse__()              {"pointers_to_1": …, "indices_1": …, "values": …}

Formats without a name are described level by level, as "custom". The arrays are the tensor's,
without copies. (GraphBLAS/binsparse-specification; data-apis/array-api, issue 840.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from taco_py.data.storage.borrow import index_vectors, value_vector
from taco_py.data.storage.check import check_lengths, check_shape
from taco_py.data.storage.pack import canonical, is_sorted, is_unique, pack_coo, unpack
from taco_py.data.storage.sizes import chains
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData, dense_data, ordered
from taco_py.language.diagnostics.errors import FormatError, OperandTypeError, StructureError
from taco_py.language.fill import as_number, fill_of
from taco_py.language.formats import COO, CSC, CSR, DCSR, LETTERS, Format, Level, dense

VERSION = "0.1"
NAMES: tuple[tuple[str, Format], ...] = (
    ("DVEC", dense(1)), ("DMATR", dense(2)), ("DMATC", Format.parse("dd:1,0")),
    ("CVEC", Format.parse("s")), ("CSR", CSR), ("CSC", CSC), ("DCSR", DCSR),
    ("DCSC", Format.parse("ss:1,0")), ("COOR", COO(2)), ("COOC", Format.parse("uq:1,0")),
)  # fmt: skip
"""The formats of binsparse with names, as formats of this package."""
ALIASES = (("DMAT", "DMATR"), ("COO", "COOR"))
STRUCTURES = ("symmetric", "hermitian", "skew_symmetric")
MINOR = "read a version 0.1 file, or convert it"


def describe(data: TensorData) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the descriptor of a tensor, and its arrays by their names.

    Coordinates are sorted and duplicates summed, as the format requires. Raises OperandTypeError
    for 16-bit floating-point values, which it lacks.
    """
    plain = as_described(data)
    custom, arrays = levels_described(plain)
    word = value_type(plain.dtype)
    arrays["values"] = plain.values if not plain.format.is_dense else in_level_order(plain)
    if plain.dtype.kind == "c":
        arrays["values"] = arrays["values"].view(plain.values.real.dtype)
    elif plain.dtype.kind == "b":
        arrays["values"] = arrays["values"].view(np.uint8)
    descriptor: dict[str, Any] = {
        "version": VERSION,
        "format": name_of(plain.format) or "custom",
        "shape": list(plain.shape),
        "number_of_stored_values": int(plain.values.size),
        "data_types": {name: array.dtype.name for name, array in arrays.items()},
    }
    descriptor["data_types"]["values"] = word
    if descriptor["format"] == "custom":
        descriptor["custom"] = custom
    if plain.fill and not plain.format.is_dense:
        descriptor["fill"] = True
        descriptor["data_types"]["fill_value"] = word
        number = np.array([as_number(plain.fill, plain.dtype)], plain.dtype)
        arrays["fill_value"] = number.view(arrays["values"].dtype)
    return {"binsparse": descriptor}, arrays


def as_described(data: TensorData) -> TensorData:
    """Return the tensor in a describable format, sorted and without duplicates."""
    form = ordered(data.format)
    checked = replace(data, format=form, sorted=is_sorted(data))
    return checked if checked.sorted and is_unique(checked) else canonical(checked)


def in_level_order(data: TensorData) -> Array:
    """Return the values of a dense tensor in the order of its levels, as a vector."""
    return data.values.transpose(data.format.mode_order).reshape(-1)


def name_of(form: Format) -> str:
    """Return the name of a format with sorted, unique entries, "" where it has none."""
    kinds = [level.kind for level in form.levels]
    for name, known_form in NAMES:
        if (
            known_form.mode_order == form.mode_order
            and [level.kind for level in known_form.levels] == kinds
        ):
            return name
    return ""


def value_type(dtype: np.dtype[Any]) -> str:
    """Return the name of a type of values. Raises OperandTypeError."""
    if dtype.kind == "b":
        return "bint8"
    if dtype.kind == "c":
        return f"complex[float{dtype.itemsize * 4}]"
    if dtype.kind in "iuf" and dtype.itemsize * 8 >= (32 if dtype.kind == "f" else 8):
        return dtype.name
    raise OperandTypeError(
        f"Expected values of a type that binsparse has, found {dtype}",
        hint='convert them first: T.astype("float32")',
    )


def levels_described(data: TensorData) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the levels as nested descriptions, and the arrays that they name."""
    arrays: dict[str, Array] = {}
    parts: list[dict[str, Any]] = []
    for start, stop in chains(data.format):
        if data.format.levels[start].full:
            parts.append({"level_desc": "dense", "rank": 1})
            continue
        parts.append({"level_desc": "sparse", "rank": stop - start})
        pos = data.levels[start].pos
        if start and pos is not None:
            arrays[f"pointers_to_{start}"] = pos
        for place in range(start, stop):
            crd = data.levels[place].crd
            assert crd is not None
            arrays[f"indices_{place}"] = crd
    level: dict[str, Any] = {"level_desc": "element"}
    for part in reversed(parts):
        level = {**part, "level": level}
    custom: dict[str, Any] = {"level": level}
    if data.format.mode_order != tuple(range(data.format.order)):
        custom["transpose"] = list(data.format.mode_order)
    return custom, arrays


# ---------------------------------------------------------------- reading


def is_described(obj: Any) -> bool:
    """Tell whether an object has the protocol."""
    return hasattr(obj, "__binsparse_descriptor__") and hasattr(obj, "__binsparse__")


def read(obj: Any) -> TensorData:
    """Return the tensor of an object that has the protocol, in its arrays."""
    arrays = obj.__binsparse__()
    return from_described(obj.__binsparse_descriptor__(), arrays, "its descriptor")


def from_described(descriptor: Any, arrays: Mapping[str, Any], who: str) -> TensorData:
    """Return the tensor of a descriptor and its arrays.

    Raises FormatError naming the missing key of a descriptor, StructureError where an array is
    missing or does not fit.
    """
    description = _described(descriptor, who)
    form, shape = _format(description, who), check_shape(description["shape"])
    if form.order != len(shape):
        raise FormatError(
            f"{who}: Expected a shape of {form.order} sizes for the format, found {shape}",
            hint="mend the descriptor",
        )
    types = description["data_types"]
    values = _values(_array(arrays, "values", who), types.get("values", ""), description, who)
    if form.is_dense:
        return dense_data(_dense(values, form, shape, who), dense(len(shape)))
    data = TensorData(form, shape, _levels(form, arrays, who), values)
    check_lengths(data)
    data = replace(data, values=value_vector(values))
    if description.get("fill"):
        word = types.get("fill_value", types.get("values", ""))
        number = _values(_array(arrays, "fill_value", who), word, {}, who)
        data = replace(data, fill=fill_of(number[0], data.dtype))
    return _mirrored(data, str(description.get("structure", "")), who)


def _described(descriptor: Any, who: str) -> dict[str, Any]:
    """Return the binsparse part of a descriptor. Raises FormatError for a missing key."""
    described = descriptor.get("binsparse", descriptor) if isinstance(descriptor, dict) else None
    required = ("version", "format", "shape", "data_types")
    if not isinstance(described, dict) or any(key not in described for key in required):
        missing = [
            key for key in required if not isinstance(described, dict) or key not in described
        ]
        raise FormatError(
            f"{who}: Expected a binsparse descriptor with {', '.join(required)}, found no "
            f"{missing[0]}",
            hint='as in {"binsparse": {"version": "0.1", "format": "CSR", …}}',
        )
    if str(described["version"]).partition(".")[0] not in ("0", "1"):
        raise FormatError(
            f"{who}: Expected binsparse 0.1, found version {described['version']!r}", hint=MINOR
        )
    return described


def _format(description: Mapping[str, Any], who: str) -> Format:
    """Return the format that a descriptor names or describes."""
    if "custom" in description:
        return _custom(description["custom"], who)
    word = description["format"]
    if isinstance(word, dict):
        return _custom(word.get("custom", word), who)
    name = dict(ALIASES).get(str(word).upper(), str(word).upper())
    form = dict(NAMES).get(name)
    if form is None:
        raise FormatError(
            f"{who}: Expected one of {', '.join(name for name, _ in NAMES)}, found {word!r}",
            hint="other formats are described level by level, in custom",
        )
    return form


def _custom(custom: Any, who: str) -> Format:
    """Return the format of nested descriptions of levels."""
    levels: list[Level] = []
    level = custom.get("level")
    while isinstance(level, dict) and level.get("level_desc") != "element":
        kind, rank = level.get("level_desc"), int(level.get("rank", 1))
        if kind not in ("dense", "sparse") or rank < 1:
            raise FormatError(
                f"{who}: Expected a level dense, sparse or element, found {kind!r} of rank {rank}",
                hint="mend level_desc",
            )
        sparse = (LETTERS["s"],) if rank == 1 else COO(rank).levels
        levels += (LETTERS["d"],) * rank if kind == "dense" else sparse
        level = level.get("level")
    modes = tuple(map(int, custom.get("transpose", range(len(levels)))))
    return Format(tuple(levels), modes)


def _levels(form: Format, arrays: Mapping[str, Any], who: str) -> tuple[LevelArrays, ...]:
    """Return the arrays of each level, index arrays of one type."""
    names: list[str] = []
    for place, level in enumerate(form.levels):
        if level.is_list and place:
            names.append(f"pointers_to_{place}")
        if not level.full:
            names.append(f"indices_{place}")
    stored = [_array(arrays, name, who) for name in names]
    narrow = [_signed(array, name, who) for array, name in zip(stored, names, strict=True)]
    plain = dict(zip(names, index_vectors(narrow, names), strict=True))
    levels = []
    for place, level in enumerate(form.levels):
        crd = plain.get(f"indices_{place}")
        pos = plain.get(f"pointers_to_{place}")
        if not place and level.is_list and crd is not None:
            pos = np.array([0, len(crd)], crd.dtype)
        levels.append(LevelArrays(pos, crd))
    return tuple(levels)


def _signed(array: Array, name: str, who: str) -> Array:
    """View unsigned index arrays as signed ones. Raises StructureError for too large numbers."""
    if array.dtype.kind != "u" or array.dtype.itemsize < 4:
        return array
    signed = array.view(f"i{array.dtype.itemsize}")
    if len(signed) and int(signed.min()) < 0:
        if array.dtype.itemsize == 4:
            return array.astype(np.int64)
        raise StructureError(
            f"{who}: Expected {name} below 2^63, found {int(array.max())}", hint="mend the array"
        )
    return signed


def _values(array: Array, word: str, description: Mapping[str, Any], who: str) -> Array:
    """Decode the values of a data type: truths, complex numbers, or one value for all."""
    if word.startswith("iso[") and word.endswith("]"):
        one = _values(array, word[4:-1], {}, who)
        count = int(description.get("number_of_stored_values", 1))
        return np.broadcast_to(one[:1], (max(count, 0),))  # expanded after a check of its length
    if word.startswith("complex["):
        return array.view(f"c{2 * array.dtype.itemsize}") if array.dtype.kind == "f" else array
    return array.astype(np.bool_) if word == "bint8" else array


def _dense(values: Array, form: Format, shape: tuple[int, ...], who: str) -> Array:
    """Return the array of a dense format, from its values in the order of its levels."""
    sizes = form.stored(shape)
    if values.size != prod(sizes):
        raise StructureError(
            f"{who}: Expected {prod(sizes)} values for the shape {shape}, found {values.size}",
            hint="mend the descriptor",
        )
    return values.reshape(sizes).transpose(np.argsort(form.mode_order))


def _array(arrays: Mapping[str, Any], name: str, who: str) -> Array:
    """Return an array by its name. Raises StructureError where it is missing."""
    if name not in arrays:
        raise StructureError(
            f"{who}: Expected an array {name}, found {', '.join(arrays) or 'none'}",
            hint="its format has it",
        )
    return np.asarray(arrays[name])


def _mirrored(data: TensorData, structure: str, who: str) -> TensorData:
    """Expand a matrix of which a triangle is stored; return all others unchanged."""
    if not structure or structure == "general":
        return data
    word = structure.removesuffix("_lower").removesuffix("_upper")
    if word not in STRUCTURES or data.format.order != 2:
        raise FormatError(
            f"{who}: Expected a structure {', '.join(STRUCTURES)} of a matrix, found {structure!r}",
            hint="leave structure out for a matrix that is stored whole",
        )
    (rows, columns), values = unpack(data)
    other = np.flatnonzero(rows != columns)
    turned = values[other]
    turned = -turned if word == "skew_symmetric" else turned
    turned = turned.conj() if word == "hermitian" else turned
    coords = (
        np.concatenate((rows, columns[other])),
        np.concatenate((columns, rows[other])),
    )
    return pack_coo(coords, np.concatenate((values, turned)), data.shape, data.format, None,
                    data.fill)  # fmt: skip
