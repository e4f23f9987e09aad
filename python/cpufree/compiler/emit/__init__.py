"""C++ of programs: kernels over the port, made of the pieces in cpufree/programs."""

from cpufree.compiler.emit.kernel import Emitted, emit

__all__ = ["Emitted", "emit"]
