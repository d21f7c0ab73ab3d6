"""The types of a benchmark suite: groups of rows that run in turns, figures, targets, and results."""
import dataclasses
import statistics

from harness import Run


@dataclasses.dataclass
class Figure:
    """One number that a group yields; one table."""

    title: str
    unit: str
    floor: str = ""
    higher_is_better: bool = False


@dataclasses.dataclass
class Row:
    """One program with its arguments. A bound is not a peer: it shows what the machine can do."""

    label: str
    program: str
    args: dict
    thread_safe: bool = True
    bound: bool = False
    gib: float = 0.5  # memory that it needs; with less the row is skipped

    @property
    def ours(self):
        return self.program.split()[0] == "stint"


@dataclasses.dataclass
class Group:
    """Rows that answer the same question. They run interleaved, so that all of them see the same noise."""

    name: str
    command: str
    note: str
    figures: dict  # bench → Figure
    rows: list
    rounds_max: int = 0  # for groups that take long and compare inside one process; 0: as many as the others


@dataclasses.dataclass
class Target:
    """A target for a figure. `judge(results)` → TargetResult, or None if something was not measured."""

    group: str
    text: str
    judge: callable


@dataclasses.dataclass
class TargetResult:
    seen: str
    reached: bool
    gap: str = ""  # if missed: by how much


class Results:
    """Every process that was run, by group and row."""

    def __init__(self):
        self.runs: dict[tuple[str, str], list[Run]] = {}
        self.skipped: dict[tuple[str, str], str] = {}

    def add(self, group, row, run):
        self.runs.setdefault((group.name, row.label), []).append(run)

    def values(self, group, label, bench):
        """One value per process: the median of its samples."""
        runs = self.runs.get((group, label), [])
        return [statistics.median(run.samples[bench]) for run in runs if run.samples.get(bench)]

    def median(self, group, label, bench):
        values = self.values(group, label, bench)
        return statistics.median(values) if values else None

    def errors(self, group, label):
        return [run.error for run in self.runs.get((group, label), []) if run.error]

    def other_cores(self, group, label):
        runs = self.runs.get((group, label), [])
        return statistics.median(run.other_cores for run in runs) if runs else None

    def ratio(self, group, bench, worse, better):
        """The ratio of `worse` to `better`, by the medians of the rounds; None if one of them is missing."""
        above, below = self.values(group, worse, bench), self.values(group, better, bench)
        if not above or not below:
            return None
        if len(above) != len(below):
            return statistics.median(above) / statistics.median(below)
        # Round by round, because the two of one round ran within seconds of each other.
        return statistics.median(a / b for a, b in zip(above, below))
