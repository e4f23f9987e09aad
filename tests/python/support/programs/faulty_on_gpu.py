"""Texts of programs for GPUs with one fault each, for tests of hang reports.

On GPUs, or on threads of the CPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FAULTY = """
#include <type_traits>
namespace faulty {{
// What is done to the packets of one block and epoch: by the network beneath the tracer, or by the
// program above it.
template <class P, bool kProgram>
struct Port : P {{
  template <class... A>
  __device__ explicit Port(A&&... args) : P(static_cast<A&&>(args)...) {{}}
  __device__ void put_packet(cpufree::Packet* packet, int pe, double value, std::uint64_t tag) {{
    const cpufree::Epoch epoch = cpufree::tag_epoch(tag);
    const bool hit = this->pe() == {pe} && this->block() == {block} && epoch == {epoch};
    if (!hit || kProgram != {by_program}) return P::put_packet(packet, pe, value, tag);
    const std::uint64_t begin = P::now();
    while (P::now() - begin < {nanoseconds}ULL && !waited) {{
    }}
    waited = true;
    if ({low}) P::put_packet(packet, pe, value, cpufree::make_tag(epoch - 1, 0U));
    if ({late}) P::put_packet(packet, pe, value, tag);
  }}
  bool waited = false;
}};
}}  // namespace faulty
"""
_WRONG = "faulty::Port<std::remove_reference_t<decltype(traced)>, true> port(traced);"
ON_THREADS = (
    "faulty::Port<cpufree::cpu_threads::Port, false> network(port); "
    f"cpufree::run_traced(network, args.traces, [&](auto& traced) {{ {_WRONG} "
    "run(port, args, heap); });"
)
"""The call of a traced kernel with the fault, on threads of the CPU."""


@dataclass(frozen=True)
class Fault:
    """What happens to what a block sends with an epoch."""

    kind: str
    """dropped, under-counted or late."""
    pe: int
    block: int
    epoch: int
    seconds: float = 0.0
    """That it is late."""

    @property
    def ports(self) -> str:
        """The text of ports with the fault: faulty::Port."""
        words = {
            "pe": self.pe, "block": self.block, "epoch": self.epoch,
            "by_program": str(self.kind != "dropped").lower(),
            "nanoseconds": round(1e9 * self.seconds),
            "low": int(self.kind == "under-counted"), "late": int(self.kind == "late"),
        }  # fmt: skip
        return _FAULTY.format(**words)

    def put_into(self, text: str) -> str:
        """Return the text of a traced kernel for GPUs with the fault."""
        text, ports = re.subn(
            r"cpufree::gpu_p2p::Port port\(", "faulty::Port<cpufree::gpu_p2p::Port, false> port(",
            text,
        )  # fmt: skip
        text, calls = re.subn(r"\[&\]\(auto& port\) \{", f"[&](auto& traced) {{ {_WRONG}", text)
        assert (ports, calls) == (1, 1)
        head, entry, rest = text.partition('\nextern "C" __global__')
        return head + self.ports + entry + rest
