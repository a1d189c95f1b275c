#!/usr/bin/env python3
"""Predicts how the rate of `sluice serve` grows with its loops, from the cache lines that each operation visits.

    bench/smb_scaling_model.py [--lines docs/benchmarks/smb_shared_lines.jsonl] [--measured docs/benchmarks/smb_scaling.jsonl]
                               [--loops 1,2,4,8,16,64] [--seed 1] [--operations 4000]

A discrete-event simulation: each loop carries out one operation after the other, without a pause. An operation takes its CPU
time on one loop (`server_us` of the measured rows), times a random factor, and visits the lines that tests/shared_lines has
recorded, at the recorded places. A line that another loop has changed has to be moved first; a line moves to one loop at a
time, in the order of the requests. A mutex is held from its lock to its unlock. Loops that wait for it poll, and get it in the
order of the requests; at the index of names, which has a std::mutex, they sleep, and try again when they have been woken.

What the kernel shares between the loops (descriptor table, reference counts of directories and credentials, lists of inodes)
is one number per operation, fitted to the measured CPU time at --fit loops, which is not predicted. There are two variants:

    serial   a lock of the kernel that an operation holds for this part of its time. Loops wait for each other.
    spread   many lines: an operation takes this much longer if all lines have to be moved. Loops do not wait.

Prints a row of JSON per operation, variant and number of loops: the rate, the CPU time of an operation, and the error compared
with the measurement; and the measured rates, for tools/plot.
"""

import argparse
import collections
import heapq
import json
import pathlib
import random
import sys

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent / "docs" / "benchmarks"

# The workload that measures an operation.
WORKLOADS = {"echo": "echo", "read": "random-read", "open": "open", "create": "create"}
# Operations that open or create files: the kernel's line is fitted for these.
WITH_KERNEL = ("open", "create")
# Time to move a line, in us, by the number of loops: up to the first number.
MOVE_US = ((16, 0.1), (64, 0.25))
# The lines of these objects are chosen by a hash of the file: one of as many sets of lines.
SHARDS = {"file table": 64, "attribute memory": 16}
SESSIONS, SESSIONS_PER_LOOP_MIN = 32, 4  # in the benchmark, which has eight loops at most
# The part of an operation's time that is not the kernel's: no mutex but that of the index of names is held in a system call.
USER_PART = 0.4
# The index of names reads the kernel's queue of changes in its critical section, which is this part of a creation: on two loops,
# 0.074 creations slept there. What a loop that has to sleep loses until it runs again, and the CPU time of both calls.
NAME_INDEX, NAME_INDEX_PART, WAKE_US, SLEEP_US = "name index", 0.09, 5.0, 3.0
SHAPE = 4  # gamma-distributed service times: the standard deviation is half the mean

# kind: read, write, lock, sleep (a lock), kernel; line: number, how it is chosen, from how many; lasts: a section, as a part of
# the operation
Step = collections.namedtuple("Step", "at kind line probability lasts")
ONE, BY_VISIT, BY_OPERATION, BY_SESSION = range(4)


def rows_of(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines() if line]


def move_us(loops):
    return next(us for most, us in MOVE_US if loops <= most)


class Operation:
    """The steps of an operation at lines that loops share, by the part of its time at which they come."""

    def __init__(self, name):
        self.name = name
        self.steps = []
        self.lines = 0
        self.moves_in_index = 0.0

    def add(self, row, chosen):
        number, shards = self.lines, SHARDS.get(row["object"], 1)
        self.lines += 1
        if "visits_of_all" in row:  # the places of a ring
            line = (number, BY_VISIT, row["lines"])
            visits = row["visits_of_all"]
            count = max(1, round(visits))
            self.steps += [Step((i + 0.5) / count, "write", line, visits / count, 0.0) for i in range(count)]
            return
        line = (number, chosen if shards != 1 else ONE, shards)
        if row["object"] == NAME_INDEX:
            self.moves_in_index += row["moves"]
        for kind, probability, begin, end in row["visits"]:
            if kind == "section":
                self.steps.append(Step(begin, "sleep" if row["object"] == NAME_INDEX else "lock", line, min(probability, 1),
                                       (end - begin) * USER_PART))
            else:
                self.steps.append(Step(begin, kind, line, min(probability, 1), 0.0))

    def visits(self):
        """Returns how many visits to shared lines an execution makes."""
        return sum(step.probability for step in self.steps)


def operations_of(rows):
    """Returns the operations of the rows. Lines that a hash chooses are recorded with clients that open one file; in the
    workloads, each session opens the same file or directory again. The two clients that create files, each in its own
    directory, got the same number for the new file; in the workload, each file has another number."""
    operations = {name: Operation(name) for name in WORKLOADS}
    for row in rows:
        is_sharded = row["object"] in SHARDS
        if row["operation"] in WORKLOADS and (not is_sharded or (row["operation"] == "create" and "visits" in row)):
            operations[row["operation"]].add(row, BY_OPERATION)
        if row["operation"] == "open of one file" and is_sharded and "visits" in row:
            operations["open"].add(row, BY_SESSION)
            operations["create"].add(row, BY_SESSION)
    for each in operations.values():
        each.steps.sort(key=lambda step: step.at)
    return operations


class Line:
    def __init__(self):
        self.holders = set()
        self.free_at = 0.0     # it is moved until then
        self.held_until = 0.0  # a mutex in it is held, or the kernel has it


class Machine:
    """`loops` loops that carry out an operation of `service_us` on average."""

    def __init__(self, operation, service_us, loops, options, kernel_us=0.0):
        self.service_us = service_us
        self.loops = loops
        self.move_us = move_us(loops)
        self.kernel_us = kernel_us
        self.index_us = NAME_INDEX_PART * service_us + (operation.moves_in_index * self.move_us if loops > 1 else 0)
        self.random = random.Random(f"{options.seed} {operation.name} {loops}")
        self.steps = operation.steps
        if kernel_us and options.kernel == "spread":
            self.service_us += kernel_us * (loops - 1) / loops
        elif kernel_us:
            self.steps = sorted([*self.steps, Step(0.5, "kernel", ("kernel", ONE, 1), 1, 0.0)], key=lambda step: step.at)
        self.sessions = max(SESSIONS_PER_LOOP_MIN, SESSIONS // loops)
        self.shards = {}
        self.lines = collections.defaultdict(Line)
        self.events = []
        self.plans = [None] * loops
        self.slept_us = 0.0

    def run(self, operations):
        """Returns the time and the CPU time of an operation, in us, without the first tenth of them."""
        for loop in range(self.loops):
            self._plan(loop)
            self._at(self.random.random() * self.service_us, loop)
        warm, began, slept, done, now = operations // 10, 0.0, 0.0, 0, 0.0
        while done < operations:
            now, _, loop = heapq.heappop(self.events)
            if self.plans[loop][0][1] == "end":
                done += 1
                if done == warm:
                    began, slept = now, self.slept_us
                self._plan(loop)
                self._go_on(now, loop)
            else:
                self._step(now, loop)
        each = self.loops * (now - began) / (operations - warm)
        return each, each - (self.slept_us - slept) / (operations - warm)

    def _at(self, time, loop):
        heapq.heappush(self.events, (time, self.random.random(), loop))

    # The steps of the next operation of a loop, each with the time since the one before; the last one is its end.
    def _plan(self, loop):
        time = self.service_us * self.random.gammavariate(SHAPE, 1 / SHAPE)
        session = (loop, self.random.randrange(self.sessions))
        shards = {}  # the same for all lines of one set
        plan, before = collections.deque(), 0.0
        for step in self.steps:
            if step.probability < 1 and self.random.random() >= step.probability:
                continue
            line = self._choose(step.line, session, shards)
            lasts = {"sleep": self.index_us, "kernel": self.kernel_us}.get(step.kind, step.lasts * time)
            plan.append(((step.at - before) * time, step.kind, line, lasts))
            before = step.at
        plan.append(((1 - before) * time, "end", None, 0.0))
        self.plans[loop] = plan

    def _choose(self, line, session, shards):
        number, how, count = line
        if how == ONE:
            return number, 0
        if how == BY_VISIT:
            return number, self.random.randrange(count)
        if how == BY_OPERATION:
            return number, shards.setdefault(count, self.random.randrange(count))
        if (session, count) not in self.shards:  # another session may have the same
            self.shards[session, count] = self.random.randrange(count)
        return number, self.shards[session, count]

    def _go_on(self, now, loop):
        self._at(now + self.plans[loop][0][0], loop)

    # A loop has reached the place of its next step: the next event is when it reaches the one after.
    def _step(self, now, loop):
        _, kind, name, lasts = self.plans[loop][0]
        line = self.lines[name]
        if kind == "sleep" and line.free_at > now:
            self.slept_us += line.free_at + WAKE_US - now
            self._at(line.free_at + WAKE_US + SLEEP_US, loop)
            return
        self.plans[loop].popleft()
        now = self._access(line, max(now, line.held_until), loop, kind != "read")
        if lasts:
            line.held_until = line.free_at = now + lasts
        self._go_on(now, loop)

    def _access(self, line, now, loop, changes):
        if changes:
            is_here = not line.holders - {loop}
            line.holders = {loop}
        else:
            is_here = loop in line.holders or not line.holders
            line.holders.add(loop)
        return now if is_here else self._serve(line, now, self.move_us)

    @staticmethod
    def _serve(line, now, time):
        line.free_at = max(line.free_at, now) + time
        return line.free_at


def predicted(operation, service_us, loops, options, kernel_us):
    """Returns the time and the CPU time of an operation, in us."""
    machine = Machine(operation, service_us, loops, options, kernel_us)
    return machine.run(options.operations * max(1, loops // 8))


def fitted_kernel_us(operation, service_us, measured_us, options):
    """Returns how long an operation has the kernel's line, so that the CPU time at --fit loops is the measured one."""
    low, high = 0.0, measured_us / 2
    for _ in range(10):
        middle = (low + high) / 2
        if predicted(operation, service_us, options.fit, options, middle)[1] < measured_us:
            low = middle
        else:
            high = middle
    return low


def measured_of(rows, subject):
    return {(row["series"], row["value"]): row for row in rows if row["subject"] == subject}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=pathlib.Path, default=BENCHMARKS / "smb_shared_lines.jsonl")
    parser.add_argument("--measured", type=pathlib.Path, default=BENCHMARKS / "smb_scaling.jsonl")
    parser.add_argument("--subject", default="sluice.serve", help="the program of the measured rows (sluice.serve)")
    parser.add_argument("--loops", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 4, 8, 16, 64],
                        metavar="N,N,…", help="numbers of loops (1,2,4,8,16,64)")
    parser.add_argument("--fit", type=int, default=8, help="the number of loops at which the kernel's line is fitted (8)")
    parser.add_argument("--kernel", choices=("serial", "spread"), help="only this variant")
    parser.add_argument("--without", action="append", default=[], metavar="OBJECT",
                        help="leave the lines of this object out, to see what it costs (repeatable)")
    parser.add_argument("--only", action="append", choices=WORKLOADS, metavar="OPERATION", help=", ".join(WORKLOADS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operations", type=int, default=4000, help="operations to simulate, of each eight loops (4000)")
    options = parser.parse_args()
    if not all(1 <= loops <= MOVE_US[-1][0] for loops in (*options.loops, options.fit)):
        parser.error(f"the time to move a line is known for 1 to {MOVE_US[-1][0]} loops")
    measured = measured_of(rows_of(options.measured), options.subject)
    variants = (options.kernel,) if options.kernel else ("serial", "spread")
    for name, operation in operations_of(row for row in rows_of(options.lines) if row["object"] not in options.without).items():
        if options.only and name not in options.only:
            continue
        print(f"{name}: {operation.visits():.3g} visits to {operation.lines} lines", file=sys.stderr)
        for options.kernel in variants if name in WITH_KERNEL else ("no kernel",):
            predict(operation, options, measured)
        for (series, loops), seen in measured.items():
            if series == WORKLOADS[name]:
                print_row("measured", series, loops, {key: seen[key] for key in ("median", "min", "max", "n", "server_us")})


def predict(operation, options, measured):
    series = WORKLOADS[operation.name]
    service_us = measured[series, 1]["server_us"]
    kernel_us = 0.0
    if operation.name in WITH_KERNEL:
        kernel_us = fitted_kernel_us(operation, service_us, measured[series, options.fit]["server_us"], options)
    for loops in options.loops:
        us, cpu_us = predicted(operation, service_us, loops, options, kernel_us)
        rate = loops / us * 1e6
        row = {"median": rate, "min": rate, "max": rate, "n": 1, "server_us": cpu_us, "server_busy": cpu_us / us,
               "kernel_us": kernel_us}
        if (series, loops) in measured:
            row["error"] = cpu_us / measured[series, loops]["server_us"] - 1
        print_row(f"sluice.model, {options.kernel}", series, loops, row)


def print_row(subject, series, loops, row):
    row = {"bench": "smb_scaling_model", "workload": f"{series}_{loops}", "subject": subject, "series": series,
           "parameter": "event loops", "value": loops, "metric": "rate", "unit": "operations/s", "better": "higher"} | row
    print(json.dumps({key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in row.items()}),
          flush=True)


if __name__ == "__main__":
    main()
