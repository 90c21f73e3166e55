"""Host functions as callables over arrays of the host: operands go over, results come back.

    call = host_function(device, module, text, signature)
    call(y, A2_pos, A2_crd, A_vals, x, n, threads)

It takes and gives what functions of C do (`runtime.call`), so that a plan carries both out alike.
How many elements a growing array has room for is known when it is reserved: what callers expect of
it is not asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codegen.devices.device import Device, Module
from codegen.devices.host_side import GrowingArray, Host
from codegen.runtime.signature import Kind, Signature


def host_function(
    device: Device, module: Module | None, text: str, signature: Signature
) -> Callable[..., Any]:
    """The function of a signature in the Python text of a module's host."""
    space: dict[str, Any] = {}
    exec(compile(text, "<host of a device>", "exec"), space)
    function = space[signature.name]

    def call(*arguments: Any) -> tuple[Any, ...] | None:
        if len(arguments) != len(signature.parameters):
            expected = len(signature.parameters)
            raise TypeError(
                f"Expected {expected} arguments for {signature.name}, found {len(arguments)}"
            )
        host = Host(device, module)
        given: list[Any] = []
        results, growing = [], []
        for parameter, argument in zip(signature.parameters, arguments, strict=True):
            if parameter.kind is Kind.THREADS:
                continue
            if parameter.kind is Kind.GROWING:
                growing.append(GrowingArray(np.dtype(parameter.element.name)))
                given.append(growing[-1])
                continue
            if not parameter.is_array:
                given.append(argument)
                continue
            array = np.asarray(argument)
            there = host.array(array, parameter.name, parameter.kind is Kind.INPUT)
            given.append(there)
            if parameter.kind is Kind.OUTPUT and array.size:
                results.append((there, array))
        function(host, *given)
        device.synchronize()
        for there, array in results:
            host.fetch(there, array)
        return tuple(host.grown(array) for array in growing) if growing else None

    return call
