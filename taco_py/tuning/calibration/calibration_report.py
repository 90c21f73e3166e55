"""What calibrating a price has found, as a table.

calibrated 2026-11-30 on AMD EPYC, x86_64, gcc 12.2
coefficient      before      after  probes  off by
iterations       1.5 ns     0.5 ns      12  ×2.81 → ×1.21
…
saved     yes
"""

from __future__ import annotations

from html import escape

from codegen.records import dataclass
from taco_py.compiler.cost.calibrated import seconds_of
from taco_py.compiler.cost.machine import Machine
from taco_py.data.kept_calibration import Calibration, MeasuredProbe, off_by
from taco_py.language.notebook.markup import block

_ROW = "{:<12}  {:>9}  {:>9}  {:>6}  {}"


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationReport:
    """What calibrating has found, as a table: `print(report)`.

    calibration  the factors and the probes
    machine      whose costs they multiply
    saved        whether plans follow them from now on
    reason       why they are not saved, "" where they are
    """

    calibration: Calibration
    machine: Machine
    saved: bool
    reason: str = ""

    @property
    def factors(self) -> dict[str, float]:
        """Return the factor of each coefficient, 1 for the price as shipped."""
        return dict(self.calibration.factors)

    def __str__(self) -> str:
        lines = [
            self.calibration.label,
            _ROW.format("coefficient", "before", "after", "probes", "off by"),
        ]
        for name, factor in self.calibration.factors:
            before = seconds_of(self.machine, name)
            probes = self.calibration.probes_of(name)
            lines.append(
                _ROW.format(
                    name, _seconds(before), _seconds(before * factor), len(probes), _off(probes)
                )
            )
        every = self.calibration.probes
        lines.append(_ROW.format("all", "", "", len(every), _off(every)))
        lines.append(f"saved     {'yes' if self.saved else f'no, {self.reason}'}")
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return block(f"<pre>{escape(str(self))}</pre>")


def _seconds(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} µs" if seconds >= 1e-6 else f"{seconds * 1e9:.3g} ns"


def _off(probes: tuple[MeasuredProbe, ...]) -> str:
    """Return by which factor prices and times differ in the median, before → after."""
    return "" if not probes else "×{:.2f} → ×{:.2f}".format(*off_by(probes))
