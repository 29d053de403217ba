# SPDX-License-Identifier: GPL-2.0-or-later
"""Speed grades: what a datasheet says in nanoseconds, and what a controller makes of it in clocks.

DDR3: JEDEC JESD79-3F; the numbers as printed in Samsung's datasheets M378B5673EH1 rev. 1.03, p. 28
(speed bins, tRRD, tFAW, tRFC, tREFI) and M393B5273CH0 rev. 1.0, p. 35 (tRTP, tWTR, tWR, tCCD).
DDR4: JEDEC JESD79-4; the numbers as printed in Micron's datasheet "4Gb: x4, x8, x16 DDR4 SDRAM",
tables 152 (speed bins, CWL) and 157 (tRTP, tCCD, tRRD, tFAW, tWTR, tWR).
"""

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from fractions import Fraction

BURST_BYTES = 64  # 8 beats of 64 bits: a cache line
TREFI_NS = 7800  # up to 85 °C


@dataclass(frozen=True)
class Clocks:
    """Minimal distances of commands, in clocks of the bus, in the order that the model reads.

    A burst of 8 takes `bl` = 4 clocks: data comes on both edges. `rtrs` is the gap between bursts
    of two ranks; JEDEC leaves it to the controller, DRAMSim2 (Rosenfeld et al., CAL 2011) takes 1.
    """

    cl: int
    cwl: int
    bl: int
    rcd: int
    rp: int
    ras: int
    rc: int
    rrd_s: int
    rrd_l: int
    faw: int
    ccd_s: int
    ccd_l: int
    rtp: int
    wr: int
    wtr_s: int
    wtr_l: int
    rfc: int
    refi: int
    rtrs: int

    @property
    def statement(self) -> str:
        """As the model reads them."""
        return "timing " + " ".join(map(str, astuple(self)))


@dataclass(frozen=True)
class Grade:
    """A speed grade with devices of one density whose page is 1 KiB."""

    name: str
    megatransfers: Fraction  # a second
    ns: Mapping[str, float] = field(hash=False)
    # clocks, where the standard says max(clocks, ns)
    least: Mapping[str, int] = field(hash=False)
    cl: int
    cwl: int
    devices: int  # of a rank of 64 bits
    ranks: int
    groups: int
    banks: int  # of a rank
    # Of JESD79-4's rounding: a parameter that exceeds a whole number of clocks by less counts as it
    tolerance: Fraction = Fraction(0)

    @property
    def clock_ns(self) -> float:
        return float(2000 / self.megatransfers)

    @property
    def row_bytes(self) -> int:
        """Of a rank: a page of each device."""
        return self.devices * 1024

    @property
    def gigabytes_a_second(self) -> float:
        """Of a channel of 64 bits, at its peak."""
        return float(self.megatransfers * 8 / 1000)

    def whole(self, name: str) -> int:
        """A parameter in clocks, rounded up."""
        exact = Fraction(str(self.ns[name])) * self.megatransfers / 2000
        return max(math.ceil(exact - self.tolerance), self.least.get(name, 0))

    @property
    def clocks(self) -> Clocks:
        names = ("rcd", "rp", "ras", "rrd_s", "rrd_l", "faw", "rtp", "wr", "wtr_s", "wtr_l", "rfc")
        counts = {name: self.whole(name) for name in names}
        return Clocks(
            cl=self.cl,
            cwl=self.cwl,
            bl=4,
            rc=counts["ras"] + counts["rp"],
            ccd_s=4,
            ccd_l=self.whole("ccd_l"),
            refi=int(TREFI_NS * self.megatransfers / 2000),
            rtrs=1,
            **counts,
        )


def _ddr3(
    name: str, megatransfers: Fraction, *, cl: int, cwl: int, ras: float, core: float
) -> Grade:
    """Devices of 2 Gbit, 4 bits wide. DDR3 has no bank groups: short and long are the same."""
    rrd, wtr = 6.0, 7.5
    return Grade(
        name,
        megatransfers,
        {
            **{"rcd": core, "rp": core, "ras": ras, "rrd_s": rrd, "rrd_l": rrd, "faw": 30},
            **{"ccd_l": 0, "rtp": 7.5, "wr": 15, "wtr_s": wtr, "wtr_l": wtr, "rfc": 160},
        },
        {"rrd_s": 4, "rrd_l": 4, "ccd_l": 4, "rtp": 4, "wtr_s": 4, "wtr_l": 4},
        cl=cl,
        cwl=cwl,
        devices=16,
        ranks=2,
        groups=1,
        banks=8,
    )


DDR3_1333H = _ddr3("DDR3-1333H", Fraction(4000, 3), cl=9, cwl=7, ras=36, core=13.5)
DDR3_1600K = _ddr3("DDR3-1600K", Fraction(1600), cl=11, cwl=8, ras=35, core=13.75)
DDR4_2400R = Grade(
    "DDR4-2400R",
    Fraction(2400),
    {
        **{"rcd": 13.32, "rp": 13.32, "ras": 32, "rrd_s": 3.3, "rrd_l": 4.9, "faw": 21},
        **{"ccd_l": 5, "rtp": 7.5, "wr": 15, "wtr_s": 2.5, "wtr_l": 7.5, "rfc": 350},
    },
    {"rrd_s": 4, "rrd_l": 4, "faw": 20, "ccd_l": 4, "rtp": 4, "wtr_s": 2, "wtr_l": 4},
    cl=16,
    cwl=12,
    devices=8,
    ranks=2,
    groups=4,
    banks=16,
    tolerance=Fraction(25, 1000),
)
GRADES: Mapping[str, Grade] = {grade.name: grade for grade in (DDR3_1333H, DDR3_1600K, DDR4_2400R)}
