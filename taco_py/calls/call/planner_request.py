"""What the options of a call ask of the planner: the one place where it is derived from them."""

from __future__ import annotations

from taco_py.arguments.options import CallOptions
from taco_py.calls.call.libraries import libraries_of
from taco_py.compiler.cost.effort import Effort
from taco_py.language.problem import TensorType
from taco_py.planner.ir.goal import Request
from taco_py.planner.make import Options


def goal_of(options: CallOptions, type: TensorType) -> Request:
    """Return the request for a plan whose last result is stored as `type` says."""
    return Request(
        type,
        options.static,
        Effort(options.schedule_budget, rows=options.look_up),
        memory=options.memory,
        forms=options.forms,
        look_up=options.look_up,
        left_out=options.forbid,
        reversed=options.reversed,
        orders=options.orders,
        allow=options.allow,
    ).on(options.target)


def open_goal(options: CallOptions, type: TensorType) -> Request:
    """Return the request that other plans of a call are priced for, which may use every rule."""
    effort = Effort(options.schedule_budget)
    return Request(type, options.static, effort, memory=options.memory).on(options.target)


def planner_options(options: CallOptions, compiled: bool = False) -> Options:
    """Return the commands of the user, and the libraries that plans may call.

    compiled  whether kernels are compiled without data; see `Libraries.compiled`
    """
    libraries = libraries_of(options, compiled)
    return Options(options.path, options.contract, options.schedule, libraries)
