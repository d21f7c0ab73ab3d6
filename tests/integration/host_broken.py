#!/usr/bin/env python3
"""Breaks host limits and wardens on purpose, one place at a time, and requires that the named test fails.

    tests/integration/host_broken.py [--list] [--build DIR] [NAME…]

By hand only: it builds `stint` and the tests once per entry, about half an hour in all on two cores. NAME is a part of an
entry's name. It works on a copy of the sources in DIR (default: build/broken of this tree), so nothing here is touched; a
second run reuses it and only builds what changed. A test that passes although it must fail is printed as
SURVIVED, and the exit status is then 1.
"""
import argparse
import dataclasses
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TEST_SECONDS_MAX = 240
BUILD_SECONDS_MAX = 1800
QUICK = {"STINT_CAP_SECONDS": "6", "STINT_MANY_RUNS": "20"}


@dataclasses.dataclass
class Break:
    name: str
    file: str
    old: str  # must occur exactly once
    new: str
    test: str  # of host_test.py, Tree of host_tree_test.py; or `program:filter`, a GoogleTest


ABOVE_N = ("src/limit/slots.cpp", "    const Look look = lock(index, slot);",
           "    if (index >= capacity_) continue;\n    const Look look = lock(index, slot);")

BROKEN = [
    Break("front keeps no slot", "src/cli/with.cpp", "    ward_ = ward->get();\n",
          "    for (const int slot : start.slots) ::close(slot);\n    ward_ = ward->get();\n",
          "Tree.test_13_stubborn_processes_end_when_the_warden_is_killed"),
    Break("slot freed when the command ends", "src/os/process.cpp", "    if (pid == watched) result.status = status;",
          "    if (pid == watched) { result.status = status; result.any_left = false; return result; }",
          "Cap.test_8_contend_for_2_while_stint_and_wardens_are_killed"),
    Break("every waiter counts as first", "src/limit/line.cpp", "  if (!pass_frozen) return false;", "  if (!pass_frozen) return true;",
          "Line.test_a_slow_head_is_not_overtaken"),
    Break("no lease", "src/driver/warden.cpp", "if (now >= lease_end_ && !ladder_.begun())", "if (false)",
          "Frozen.test_no_command_outlives_the_lease_of_a_stopped_stint"),
    Break("no allowance for a common freeze", "src/driver/warden.cpp", "> milliseconds(pause) + kFrozenGap", "> std::chrono::hours(1)",
          "Frozen.test_a_suspend_of_everything_ends_nothing"),
    Break("front trusts a frozen warden", "src/driver/ward.cpp", "(ready && got >= 0) || clock.now() >= overdue_", "ready && got >= 0",
          "Frozen.test_a_stopped_warden_is_dropped_and_its_command_ended"),
    Break("no sweep", "src/os/slot_file.cpp", "  if (record.run.empty()) return Swept::gone;", "  return Swept::gone;",
          "Frozen.test_both_killed_the_next_start_sweeps"),
    Break("no sweep above N", *ABOVE_N, "Frozen.test_both_killed_above_a_lowered_n"),
    Break("warden is no subreaper", "src/driver/warden.cpp", "    os::become_subreaper();\n", "",
          "Tree.test_13_stubborn_processes_end_when_stint_gets_term"),
    Break("front is no subreaper", "src/cli/with.cpp", "  os::become_subreaper();\n", "",
          "Tree.test_13_stubborn_processes_end_when_the_warden_is_killed"),
    Break("never SIGKILL", "src/driver/ladder.cpp", "  os::kill_cgroup(cgroup_);\n  os::signal_all(targets_(), SIGKILL);\n", "",
          "Tree.test_13_stubborn_processes_end_when_stint_gets_term"),
    Break("no linger", "src/driver/warden.cpp", "    200ms;  // what the command left", "    0ms;  // what the command left",
          "Tree.test_short_leftovers_may_finish_long_ones_are_ended"),
    Break("slots not watched", "src/limit/host_wait.cpp", "watching_ = watch_->add_close(path) && watching_;", "(void)path;",
          "Line.test_flock_and_stint_exclude_each_other_and_its_release_wakes_us"),
    Break("slots above N not counted", *ABOVE_N, "Line.test_held_slots_above_a_lowered_n_count_and_a_raised_one_wakes"),
    Break("line not watched", "src/limit/host_wait.cpp", "watching_ = watch_->add_close_write(limit_.line_path());", "watching_ = true;",
          "Line.test_dead_and_cancelled_waiters_leave_the_order_alone"),
    Break("a stopped head blocks", "src/limit/host_wait.cpp", "attempt(slow && !notified)", "attempt(false)",
          "Frozen.test_a_stopped_waiter_is_passed_over_and_keeps_its_place"),
    Break("a copy keeps our end of its socket", "src/os/spawn.cpp", "  close_private_descriptors(options.keep);\n", "",
          "Tree.test_13_stubborn_processes_end_when_stint_is_killed"),
    Break("a record outlives its work", "src/os/slot_file.cpp", "  std::fill_n(text, length, ' ');\n", "",
          "Cap.test_acquire_at_1_makes_the_lock_file"),
    Break("a change within the stamp resolution is trusted", "src/os/watch.cpp", "changed_ms + kStampCoarseMs < now_ms", "true",
          "os_test:DirectoryStamp.*"),
    Break("compaction while a waiter is in the line", "src/limit/line.cpp", "size() > kLineBytesMax && lock(kRecord, 0, F_WRLCK)",
          "size() > kLineBytesMax", "limit_test:LineProperty.*"),
    Break("no compaction", "src/limit/line.cpp", "size() > kLineBytesMax &&", "false &&", "Line.test_the_line_is_bounded"),
]


class Copy:
    """A copy of the sources and their build."""

    def __init__(self, folder):
        self.sources = folder / "sources"
        self.build = folder / "build"
        self.log = folder / "build.log"

    def refresh(self):
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                                capture_output=True, text=True).stdout.split("\0")
        for name in filter(lambda name: (ROOT / name).is_file(), listed):
            there, wanted = self.sources / name, (ROOT / name).read_bytes()
            if not there.exists() or there.read_bytes() != wanted:  # else its time stamp stays, and it is not rebuilt
                there.parent.mkdir(parents=True, exist_ok=True)
                there.write_bytes(wanted)
                there.chmod((ROOT / name).stat().st_mode)
        # Broken code may leave a variable unused: no warnings.
        subprocess.run(["cmake", "--preset", "release", "-S", str(self.sources), "-B", str(self.build), "-DCMAKE_CXX_FLAGS=-w"],
                       cwd=self.sources, check=True, stdout=subprocess.DEVNULL)

    def make(self, targets):
        with open(self.log, "w", encoding="utf-8") as log:
            done = subprocess.run(["nice", "-n", "15", "ninja", "-C", str(self.build), "-j2", *targets], stdout=log,
                                  stderr=subprocess.STDOUT, timeout=BUILD_SECONDS_MAX, check=False)
        return done.returncode == 0

    def put(self, file, text):
        (self.sources / file).write_text(text, encoding="utf-8")


def targets_of(entry):
    return [entry.test.partition(":")[0]] if ":" in entry.test else ["stint"]


def is_red(copy, entry):
    if ":" in entry.test:
        program, _, names = entry.test.partition(":")
        words = [next(iter(copy.build.rglob(program))), f"--gtest_filter={names}"]
    else:
        stint = next(path for path in copy.build.rglob("stint") if path.is_file())
        script = "host_tree_test.py" if entry.test.startswith("Tree.") else "host_test.py"
        words = [sys.executable, "-B", copy.sources / "tests/integration" / script, stint, entry.test]
    try:
        done = subprocess.run(words, env=dict(os.environ, **QUICK), capture_output=True, text=True, timeout=TEST_SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired:
        return True, "did not end"
    said = [line for line in (done.stdout + done.stderr).splitlines() if "Error" in line or "Failure" in line or "Assert" in line]
    return done.returncode != 0, (said or ["green"])[-1].strip()


def try_break(copy, entry):
    text = (ROOT / entry.file).read_text(encoding="utf-8")
    copy.put(entry.file, text.replace(entry.old, entry.new))
    try:
        if not copy.make(targets_of(entry)):
            return False, f"does not compile, see {copy.log}"
        return is_red(copy, entry)
    finally:
        copy.put(entry.file, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "broken")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    chosen = [entry for entry in BROKEN if not options.names or any(name in entry.name for name in options.names)]
    for entry in chosen:
        count = (ROOT / entry.file).read_text(encoding="utf-8").count(entry.old)
        if count != 1:
            sys.exit(f"'{entry.name}': the text to break occurs {count} times in {entry.file}, not once")
        if options.list:
            print(f"{entry.name}: {entry.file} → {entry.test}")
    if options.list:
        return 0
    copy = Copy(options.build.resolve())
    copy.refresh()
    survived = 0
    for number, entry in enumerate(chosen, 1):
        red, said = try_break(copy, entry)
        survived += not red
        print(f"{number}/{len(chosen)} {'red     ' if red else 'SURVIVED'} {entry.name}: {said}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} red")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
