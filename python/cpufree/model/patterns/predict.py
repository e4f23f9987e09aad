"""The time of patterns of messages, out of the curves of ways between two PEs.

A PE sends one message after the other. Each begins when the one before leaves room: that is what
one more message of a window adds, the longer one of overhead and gap. It arrives when a single
message would, and what arrives together is taken one after the other: on GPUs, where no
processor reads the values, for the receiver's overhead each. A block that moves tiles for another
one passes them on by a message to its own PE. What a round takes without messages is
measured by itself, and by how much PEs differ in that. Nothing else: no contention of links
or memory, and no noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cpufree.machine.communication import Communication
from cpufree.model.patterns.host_driven import HostDriven
from cpufree.model.patterns.messages import FLAG_BYTES, Message, Messages, compute_of, owner
from cpufree.model.samples import HOST_DRIVEN, PatternSample


def predict_pattern(found: Communication, sample: PatternSample) -> float | None:
    """Return the predicted seconds; None where a way that it takes is not in the machine file."""
    try:
        if not sample.pattern.startswith("product"):
            messages = Messages(found, sample, False)
            return sample.alone + exchange_seconds(sample.pes, sample.table, messages)
        messages = Messages(found, sample, "gets" in sample.pattern)
        overlapped = "overlapped" in sample.pattern
        if sample.pattern.endswith(HOST_DRIVEN):
            return HostDriven(sample, messages).seconds()
        if overlapped and sample.gpus:
            passed = Messages(found, sample, False).of(0, 0, FLAG_BYTES)
        else:  # threads of a PE share a core's cache: a flag among them costs little
            passed = Message(0.0, 0.0, 0.0)
        product = gets if "gets" in sample.pattern else puts
        return product(sample, messages, passed if overlapped else None)
    except KeyError:
        return None


def exchange_seconds(pes: int, table: Sequence[int], messages: Messages) -> float:
    """Return when the last PE has got all that it gets, in an exchange by a table."""
    arrivals: Mapping[int, list[tuple[float, float]]] = {pe: [] for pe in range(pes)}
    done = [0.0] * pes
    for pe in range(pes):
        clock = 0.0
        for step in range(1, pes):
            to = (pe + step) % pes
            size = table[pe * pes + to]
            if size:
                one = messages.of(pe, to, size)
                arrivals[to].append((clock + one.single, one.taken))
                clock += one.further
        done[pe] = clock
    return max(max(done[pe], _taken(0.0, arrivals[pe])) for pe in range(pes))


def _taken(begin: float, arrivals: Sequence[tuple[float, float]]) -> float:
    """Return when a PE has taken messages that arrive at some times, one after the other."""
    for arrival, taken in sorted(arrivals):
        begin = max(begin + taken, arrival)
    return begin


def gets(sample: PatternSample, messages: Messages, passed: Message | None) -> float:
    """Return the time of moving tiles by gets, or of all of the product where that overlaps.

    `passed`: the message by which a second block passes a tile on; None: there is none.
    """
    side = round(sample.pes**0.5)
    slowest = 0.0
    for pe in range(sample.pes):
        steps = [
            [
                messages.of(pe, source, sample.bytes).single
                for source in (owner(pe, side, step, 0), owner(pe, side, step, 1))
                if source != pe
            ]
            for step in range(side)
        ]
        if passed is not None:
            slowest = max(slowest, _overlapped(steps, compute_of(sample, pe), passed))
        else:
            slowest = max(slowest, sum(map(sum, steps)))
    return slowest


def _overlapped(steps: Sequence[Sequence[float]], compute: float, passed: Message) -> float:
    """Return when the last step is computed; each begins when its tiles have been passed on."""
    moved = passed.single  # by which the second block begins
    done = 0.0
    for step in steps:
        moved += sum(step) + len(step) * passed.further
        arrived = moved + (passed.single - passed.further if step else 0.0)
        done = max(done, arrived if step else done) + compute
    return done


def puts(sample: PatternSample, messages: Messages, passed: Message | None) -> float:
    """Return the same for puts: tiles come when their owner has sent them.

    A PE that computes faster than the others waits for them. On a core a PE is the faster one in
    all steps, and waits for as much in all as the others take longer. On a GPU a step takes as long
    as its tiles lie far away in memory, which differs from step to step: times of steps add up like
    random numbers, so that what PEs take in all differs by the root of the steps as much as what
    they take for one, and there is such a wait in each step.
    """
    side, pes = round(sample.pes**0.5), sample.pes
    waits = sample.apart * (1.0 - bool(sample.computes))
    if sample.gpus and passed is None:
        waits = sample.apart * side**0.5
        sample = replace(sample, computes=())
    overlapped = passed is not None
    sender = [passed.single if passed is not None else 0.0] * pes  # when it may send the next tile
    clock = [0.0] * pes  # when a PE has multiplied
    moving = [0.0] * pes
    for step in range(side):
        begin = list(clock)
        if not overlapped:
            sender = list(clock)
        arrivals: list[list[tuple[float, float]]] = [[] for _ in range(pes)]
        for which in (0, 1):
            readers = {owner(pe, side, step, which): pe for pe in range(pes)}
            for source, reader in readers.items():
                if source != reader:
                    one = messages.of(source, reader, sample.bytes)
                    arrivals[reader].append((sender[source] + one.single, one.taken))
                    sender[source] += one.further
        for pe in range(pes):
            ready = _taken(begin[pe] if overlapped else sender[pe], arrivals[pe])
            moving[pe] += ready - begin[pe]
            clock[pe] = ready + compute_of(sample, pe)
    if overlapped:
        return max(clock)
    return max(moving) + waits
