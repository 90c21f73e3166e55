"""Host functions as callables: operands on the host go over, results for the host come back.

    function = HostFunction(device, module, text, signature)
    function(y, A2_pos, A2_crd, A_vals, x, n, threads)
    there = function.prepared(y, A2_pos, A2_crd, A_vals, x, n, threads)     # operands go over once
    there.run()

It takes and gives what functions of C do (`runtime.call`), so that a plan carries both out alike.
How many elements a growing array has room for is known when it is reserved: what callers expect of
it is not asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codegen.devices.device import Array, Device, Module
from codegen.devices.device_array import DeviceArray
from codegen.devices.host_side import GrowingArray, Host
from codegen.runtime.signature import Kind, Parameter, Signature


class HostFunction:
    """The function of a signature in the Python text of a module's host."""

    def __init__(
        self, device: Device, module: Module | None, text: str, signature: Signature
    ) -> None:
        space: dict[str, Any] = {}
        exec(compile(text, "<host of a device>", "exec"), space)
        self.device = device
        self._module = module
        self._function = space[signature.name]
        self._signature = signature

    def __call__(self, *arguments: Any) -> tuple[Any, ...] | None:
        prepared = self.prepared(*arguments)
        prepared.run()
        return prepared.results()

    def prepared(self, *arguments: Any) -> Prepared:
        """Return the function with its arguments on the device."""
        parameters = self._signature.parameters
        if len(arguments) != len(parameters):
            raise TypeError(
                f"Expected {len(parameters)} arguments for {self._signature.name}, "
                f"found {len(arguments)}"
            )
        prepared_ = Prepared(Host(self.device, self._module), self._function)
        for parameter, argument in zip(parameters, arguments, strict=True):
            if parameter.kind is not Kind.THREADS:
                prepared_.pass_argument(parameter, argument)
        return prepared_


class Prepared:
    """A host function whose arguments are on a device."""

    def __init__(self, host: Host, function: Callable[..., Any]) -> None:
        self._host = host
        self._function = function
        self._given: list[Any] = []
        self._outputs: list[tuple[DeviceArray, Array]] = []
        self._growing: list[GrowingArray] = []

    def pass_argument(self, parameter: Parameter, argument: Any) -> None:
        """Pass the next argument: an array of the host goes over, one of the device stays there."""
        if parameter.kind is Kind.GROWING:
            self._growing.append(GrowingArray(np.dtype(parameter.element.name)))
            self._given.append(self._growing[-1])
            return
        if not parameter.is_array:
            self._given.append(argument)
            return
        if isinstance(argument, DeviceArray):
            self._given.append(argument)
            return
        array = np.asarray(argument)
        device_array = self._host.array(array, parameter.name, parameter.kind is Kind.INPUT)
        self._given.append(device_array)
        if parameter.kind is Kind.OUTPUT and array.size:
            self._outputs.append((device_array, array))

    def run(self) -> None:
        """Launch the kernels; they may be running still when this returns."""
        self._function(self._host, *self._given)

    def results(self) -> tuple[DeviceArray, ...] | None:
        """Copy outputs back to host arrays, and return the grown arrays, on the device."""
        for device_array, array in self._outputs:
            array[...] = device_array.to_host()
        return tuple(map(self._host.grown, self._growing)) if self._growing else None
