"""Ways of communication: what CPU, GPU and network card do for a message, and in which order.

After LeBeane et al. 2017, section 2 and figure 3. Discrete kernels end before a message leaves and
begin after one has come; a persistent kernel runs on beside both.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cpufree.errors import InvalidInputError
from cpufree.simulate.graph import NEXT_ROUND, TRIGGER, Builder, Flow, Ids, Numbers
from cpufree.simulate.way import Messages, Sent, Way
from cpufree.text import meant


class TwoSided(Way):
    """Sends and receives by the CPU, as in MPI."""

    def send(self, flow: Flow, messages: Messages) -> Sent:
        self.notice(flow)
        m = messages.ordered()
        ids, flow.cpu = self.b.chain("send", m.src, self.c["cpu.send"], flow.cpu)
        return Sent(m, self.transmit(m, self.handshake(m, ids))[1])

    def handshake(self, m: Messages, sends: Ids) -> Ids:
        """Add the request and the reply of messages that are too long to be sent unasked."""
        long = m.bytes > self.c["cpu.eager"]
        if not np.any(long):
            return sends
        route = self.b.network.route(m.src[long], m.dst[long], np.zeros(np.count_nonzero(long)))
        wait = 2 * route.latency + self.c["cpu.recv"] + self.c["cpu.send"]
        ready = sends.copy()
        ready[long] = self.b.add("handshake", m.src[long], wait, after=(sends[long],))
        return ready

    def recv(self, flow: Flow, sent: Sent) -> None:
        owner, arrival = self.arrivals(sent)
        _, flow.cpu = self.b.chain("receive", owner, self.c["cpu.recv"], flow.cpu, (arrival,))

    def notice(self, flow: Flow) -> None:
        """Let the CPU know that the GPU is done."""


class OnCpu(TwoSided):
    """No GPU: all cores compute, and the CPU sends and receives."""

    name = "cpu"
    what = "no GPU: computation and messages by the CPU"

    def kernel(self, flow: Flow, seconds: float | Numbers, barrier: bool = True) -> None:
        flow.cpu = self.b.add("compute on CPU", self.b.all, seconds, after=(flow.cpu,))

    def combine(self, flow: Flow, seconds: float | Numbers) -> None:
        self.kernel(flow, seconds)


class Discrete(Way):
    """A kernel for each phase, put into a stream by the CPU."""

    def kernel(self, flow: Flow, seconds: float | Numbers, barrier: bool = True) -> None:
        flow.cpu = self.b.add("issue", self.b.all, self.c["cpu.issue"], after=(flow.cpu,))
        whole = np.asarray(seconds) + self.c["gpu.launch"] + self.c["gpu.teardown"]
        flow.gpu = self.b.add("kernel", self.b.all, whole, after=(flow.cpu, flow.gpu))
        flow.noticed = False


class HostDriven(Discrete, TwoSided):
    """HDN: the CPU waits for the kernel, then sends; it receives, then launches the next one."""

    name = "hdn"
    what = "host-driven: the CPU waits for the kernel, then sends and receives (MPI)"

    def notice(self, flow: Flow) -> None:
        if not flow.noticed:
            flow.cpu = self.b.add(
                "notice", self.b.all, self.c["cpu.notice"], after=(flow.cpu, flow.gpu)
            )
            flow.noticed = True

    def before_collective(self, flow: Flow) -> None:
        self.notice(flow)

    def combine(self, flow: Flow, seconds: float | Numbers) -> None:
        """The CPU adds up numbers that lie in the memory of the GPU."""
        if self.c["cpu.touch"] > 0:
            flow.cpu = self.b.add("receive", self.b.all, self.c["cpu.touch"], after=(flow.cpu,))


class GpuDirectAsync(Discrete):
    """GDS: the CPU posts ahead; the GPU's front end rings between two kernels, and waits there."""

    name = "gds"
    what = "GPUDirect Async: posted ahead, started by the GPU's front end between kernels"

    def send(self, flow: Flow, messages: Messages) -> Sent:
        m = messages.ordered()
        posts, flow.posts = self.b.chain("post", m.src, self.c["cpu.post"], flow.posts)
        rings, flow.gpu = self.b.chain("doorbell", m.src, self.c["gpu.doorbell"], flow.gpu)
        self.b.after(posts, rings)
        return Sent(m, self.transmit(m, rings)[1])

    def recv(self, flow: Flow, sent: Sent) -> None:
        owner, arrival = self.arrivals(sent)
        _, flow.gpu = self.b.chain("wait", owner, self.c["gpu.wait"], flow.gpu, (arrival,))


class LibraryKernels(Discrete):
    """Kernels of a library in the stream, whose messages go through its helper thread (NCCL)."""

    name = "nccl"
    what = "kernels of a library in the stream, messages by its helper thread (NCCL)"

    def __init__(self, builder: Builder) -> None:
        super().__init__(builder)
        self.inner = HostProxy(builder)
        self._collective = False

    def send(self, flow: Flow, messages: Messages) -> Sent:
        if not self._collective:
            self._enter(flow)
        return self.inner.send(flow, messages)

    def recv(self, flow: Flow, sent: Sent) -> None:
        self.inner.recv(flow, sent)
        if not self._collective:
            self._leave(flow)

    def combine(self, flow: Flow, seconds: float | Numbers) -> None:
        self.inner.combine(flow, seconds)

    def before_collective(self, flow: Flow) -> None:
        self._enter(flow)
        self._collective = True

    def after_collective(self, flow: Flow) -> None:
        self._leave(flow)
        self._collective = False

    def _enter(self, flow: Flow) -> None:
        flow.cpu = self.b.add("issue", self.b.all, self.c["cpu.issue"], after=(flow.cpu,))
        flow.gpu = self.b.add(
            "launch", self.b.all, self.c["gpu.launch"], after=(flow.cpu, flow.gpu)
        )

    def _leave(self, flow: Flow) -> None:
        whole = self.c["gpu.library"] + self.c["gpu.teardown"]
        flow.gpu = self.b.add("teardown", self.b.all, whole, after=(flow.gpu,))


class Persistent(Way):
    """One kernel that runs on; it polls for what comes."""

    persistent = True

    def kernel(self, flow: Flow, seconds: float | Numbers, barrier: bool = True) -> None:
        flow.gpu = self.b.add("compute", self.b.all, seconds, after=(flow.gpu,))
        if barrier and self.c["gpu.sync"] > 0:
            flow.gpu = self.b.add("synchronize", self.b.all, self.c["gpu.sync"], after=(flow.gpu,))

    def combine(self, flow: Flow, seconds: float | Numbers) -> None:
        """Scalars are added up by the thread that polls."""

    def recv(self, flow: Flow, sent: Sent) -> None:
        owner, arrival = self.arrivals(sent)
        # Different threads poll for different messages: the GPU goes on when the last has come.
        polls = self.b.add("poll", owner, self.c["gpu.poll"], after=(arrival, flow.gpu[owner]))
        flow.gpu = join(self.b, flow.gpu, owner, polls)

    def exchange_in_node(self, flow: Flow, messages: Messages) -> None:
        """Store packets that carry their flag into the memory of the others: no fence."""
        m = messages.ordered()
        senders = np.unique(m.src)
        place = np.full(self.b.pes, -1, np.int32)
        place[senders] = self.b.add(
            "store", senders, self.c["gpu.store"], after=(flow.gpu[senders],)
        )
        owner, arrival = self.arrivals(Sent(m, self.transmit(m, place[m.src])[1]))
        _, flow.gpu = self.b.chain("poll", owner, self.c["gpu.poll"], flow.gpu, (arrival,))

    def fence(self, flow: Flow, messages: Messages) -> None:
        """Make stores visible, once for all messages of a PE."""
        senders = np.unique(messages.src)
        fences = self.b.add("fence", senders, self.c["gpu.fence"], after=(flow.gpu[senders],))
        flow.gpu = flow.gpu.copy()
        flow.gpu[senders] = fences


def join(b: Builder, flow: Ids, owner: Numbers, ids: Ids) -> Ids:
    """Return the flow in which each owner waits for all of its operations; owners ascend."""
    owners, first, counts = np.unique(owner, return_index=True, return_counts=True)
    flow = flow.copy()
    single = counts == 1
    flow[owners[single]] = ids[first[single]]
    several = owners[~single]
    if len(several):
        joined = b.add("poll", several, 0.0)
        place = np.full(b.pes, -1, np.int32)
        place[several] = joined
        there = place[owner] >= 0
        b.after(ids[there], place[owner[there]])
        flow[several] = joined
    return flow


class Triggered(Persistent):
    """GPU-TN: the CPU posts ahead; a store of the running kernel triggers the network card."""

    name = "tn"
    what = "triggered: posted ahead, started by a store of the running kernel"

    def __init__(self, builder: Builder, throttled: bool = True) -> None:
        """`throttled`: the CPU posts no more than the network card has entries for."""
        super().__init__(builder)
        self.throttled = throttled
        self._posted: list[tuple[Numbers, Ids, Ids]] = []  # PEs, posts, puts

    def send(self, flow: Flow, messages: Messages) -> Sent:
        m = messages.ordered()
        b, c = self.b, self.c
        self.fence(flow, m)
        stores, flow.gpu = b.chain("store", m.src, c["gpu.store"], flow.gpu)
        inside = b.network.same_node(m.src, m.dst)
        arrival = np.empty(m.count, np.int32)
        if np.any(inside):  # a store reaches the other GPU's memory itself
            near = Messages(m.src[inside], m.dst[inside], m.bytes[inside])
            arrival[inside] = self.transmit(near, stores[inside])[1]
        if not np.all(inside):
            far = Messages(m.src[~inside], m.dst[~inside], m.bytes[~inside])
            arrival[~inside] = self._through_card(flow, far, stores[~inside])
        return Sent(m, arrival)

    def _through_card(self, flow: Flow, m: Messages, stores: Ids) -> Ids:
        b, c = self.b, self.c
        puts, arrival = self.transmit(m, None)  # the card starts them, once posted and triggered
        posts, flow.posts = b.chain("post", m.src, c["cpu.post"], flow.posts, posts=puts)
        match = b.add(
            "match", m.src, c["nic.match"], after=(stores,),
            resource=b.network.fifo_of(m.src), triggers=(TRIGGER, puts, 0),
        )  # fmt: skip
        self._hold_up(m, stores, match)
        # The buffer is free, and the operation posted again, once it has been sent.
        b.after(puts, posts, NEXT_ROUND)
        self._posted.append((m.src, posts, puts))
        return arrival

    def end_round(self, flow: Flow) -> None:
        entries = self.c.count("nic.entries") * self.b.network.nics // self.b.network.per_node
        if self.throttled and entries and self._posted:
            self._throttle(entries)
        super().end_round(flow)

    def _throttle(self, entries: int) -> None:
        """Let each post wait until the one `entries` before it of the same PE has been started."""
        pe, posts, puts = (
            np.concatenate(list(column)) for column in zip(*self._posted, strict=True)
        )
        order = np.argsort(pe, kind="stable")
        pe, posts, puts = pe[order], posts[order], puts[order]
        first = np.searchsorted(pe, pe)
        count = np.searchsorted(pe, pe, side="right") - first
        rank = np.arange(len(pe)) - first
        inside = np.flatnonzero(rank >= entries)
        self.b.after(puts[inside - entries], posts[inside])
        # The first ones of a round follow the last ones of the round before.
        wrapped = np.flatnonzero((rank < entries) & (count > entries))
        self.b.after(puts[wrapped + count[wrapped] - entries], posts[wrapped], NEXT_ROUND)

    def _hold_up(self, m: Messages, stores: Ids, match: Ids) -> None:
        """Let a store wait where the FIFO of the card is full of the same burst."""
        depth = self.c.count("nic.fifo")
        if m.count > depth:
            later = np.flatnonzero(m.src[depth:] == m.src[:-depth])
            self.b.after(match[later], stores[later + depth])


class HostProxy(Persistent):
    """GPU Host Networking: the kernel writes a request; a thread of the CPU sends."""

    name = "proxy"
    what = "host proxy: the running kernel asks a helper thread of the CPU to send"

    def send(self, flow: Flow, messages: Messages) -> Sent:
        m = messages.ordered()
        b, c = self.b, self.c
        self.fence(flow, m)
        asked, flow.gpu = b.chain("queue", m.src, c["gpu.queue"], flow.gpu)
        inside = b.network.same_node(m.src, m.dst)
        ready = asked.copy()
        far = ~inside
        if np.any(far):
            ready[far] = b.add("proxy", m.src[far], c["cpu.proxy"], after=(asked[far],),
                               resource=b.network.helper_of(m.src[far]))  # fmt: skip
        return Sent(m, self.transmit(m, ready)[1])


class Native(Persistent):
    """GPU Native Networking: the kernel builds the work request and rings the network card."""

    name = "native"
    what = "native: the running kernel builds the work request and rings the network card"

    def send(self, flow: Flow, messages: Messages) -> Sent:
        m = messages.ordered()
        self.fence(flow, m)
        inside = self.b.network.same_node(m.src, m.dst)
        seconds = np.where(inside, self.c["gpu.store"], self.c["gpu.build"])
        built, flow.gpu = self.b.chain("build", m.src, seconds, flow.gpu)
        return Sent(m, self.transmit(m, built)[1])


WAYS: Mapping[str, type[Way]] = {
    way.name: way
    for way in (OnCpu, HostDriven, GpuDirectAsync, LibraryKernels, Triggered, HostProxy, Native)
}


def way_of(name: str, builder: Builder) -> Way:
    """Return a way by its name.

    Raises:
        InvalidInputError: there is none.
    """
    if name not in WAYS:
        raise InvalidInputError(f"no way '{name}'{meant(name, WAYS)}: give {', '.join(WAYS)}")
    return WAYS[name](builder)
