"""What can go wrong between C text and a loaded kernel."""

from __future__ import annotations


class ToolchainError(RuntimeError):
    """Base of the errors of this package. `hint` is the remedy, where there is one."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")


class KernelCacheWarning(UserWarning):
    """Something in the kernel cache is not loaded; the message says what, why, and the remedy."""


class NoCompilerError(ToolchainError):
    """No C compiler was found; the message lists what was tried."""


class CompileError(ToolchainError):
    """The compiler failed. The message has the command, its output, and the path of the source."""

    def __init__(
        self,
        command: str,
        output: str,
        source: str,
        hint: str | None = None,
        compiler: str = "the C compiler",
    ) -> None:
        self.command = command
        self.output = output
        self.source = source
        self.compiler = compiler
        text = output.strip() or "(it printed nothing)"
        super().__init__(
            f"Expected {compiler} to accept {source}, found an error.\n"
            f"command: {command}\noutput:\n{text}",
            hint,
        )
