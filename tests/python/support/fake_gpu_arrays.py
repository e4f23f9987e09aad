"""Arrays of libraries that are not there: what cpufree sees of CuPy, PyTorch and others."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

CUDA = 2  # what DLPack calls the memory of NVIDIA GPUs


class FakeArray:
    """A vector "on a GPU", whose values lie on the host, where only fakes may look."""

    def __init__(self, values: Any, device: int = 0) -> None:
        self.values = np.asarray(values)
        self.number = device

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def reshape(self, *shape: int) -> FakeArray:
        return type(self)(self.values.reshape(*shape), self.number)

    def __getitem__(self, where: Any) -> FakeArray:
        return type(self)(self.values[where], self.number)

    def __setitem__(self, where: Any, values: FakeArray) -> None:
        self.values[where] = values.values

    def contiguous(self) -> FakeArray:
        return type(self)(np.ascontiguousarray(self.values), self.number)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.number

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


class CupyArray(FakeArray):
    """cupy.ndarray."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def flags(self) -> Any:
        return SimpleNamespace(c_contiguous=self.values.flags.c_contiguous)

    @property
    def device(self) -> Any:
        return contextlib.nullcontext()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        place = (self.values.ctypes.data, False)
        return {"shape": self.shape, "typestr": self.dtype.str, "version": 3, "data": place}

    def view(self, dtype: Any) -> CupyArray:
        return CupyArray(self.values.view(dtype), self.number)

    def get(self) -> Any:
        return self.values

    def set(self, values: Any) -> None:
        self.values[...] = values


class TorchDtype:
    """torch.float64: unlike NumPy's types."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class TorchTensor(FakeArray):
    """torch.Tensor, dense, on a GPU unless said otherwise."""

    def __init__(
        self, values: Any, device: int = 0, requires_grad: bool = False, layout: str = "strided"
    ) -> None:
        super().__init__(values, device)
        self.requires_grad = requires_grad
        self.layout = f"torch.{layout}"
        self.device = f"cuda:{device}"

    @property
    def dtype(self) -> TorchDtype:
        return TorchDtype(self.values.dtype.name)

    def is_contiguous(self) -> bool:
        return bool(self.values.flags.c_contiguous)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.requires_grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")
        place = (self.values.ctypes.data, False)
        return {"shape": self.shape, "version": 2, "data": place}

    def detach(self) -> TorchTensor:
        return self

    def resolve_conj(self) -> TorchTensor:
        return self

    def cpu(self) -> TorchTensor:
        return self

    def numpy(self) -> Any:
        return self.values

    def int(self) -> TorchTensor:
        return TorchTensor(self.values.astype(np.int32), self.number)


class CupyMatrix:
    """cupyx.scipy.sparse.csr_matrix."""

    format = "csr"

    def __init__(self, A: Any, device: int = 0) -> None:
        self.host = A
        self.shape = A.shape
        self.indptr = CupyArray(A.indptr.astype(np.int32), device)
        self.indices = CupyArray(A.indices.astype(np.int32), device)
        self.data = CupyArray(A.data, device)
        self.downloads = 0

    def get(self) -> Any:
        self.downloads += 1
        return self.host


class TorchMatrix:
    """torch.Tensor of layout sparse_csr."""

    layout = "torch.sparse_csr"

    def __init__(self, A: Any, device: int = 0) -> None:
        self.shape = A.shape
        self._arrays = (A.indptr.astype(np.int64), A.indices.astype(np.int64), A.data)
        self._device = device

    def crow_indices(self) -> TorchTensor:
        return TorchTensor(self._arrays[0], self._device)

    def col_indices(self) -> TorchTensor:
        return TorchTensor(self._arrays[1], self._device)

    def values(self) -> TorchTensor:
        return TorchTensor(self._arrays[2], self._device)


CupyArray.__module__ = "cupy"
CupyMatrix.__module__ = "cupyx.scipy.sparse"
TorchMatrix.__module__ = "torch"
TorchTensor.__module__ = "torch"


class OtherArray:
    """An array of a third library, which has the older interface only."""

    shape = (5,)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": "<f8", "version": 3}


def install(monkeypatch: pytest.MonkeyPatch, finished: list[Any]) -> None:
    """Put fakes of both libraries in place; `finished` collects the streams waited for."""

    def stream(where: Any) -> Any:
        return SimpleNamespace(synchronize=lambda: finished.append(where))

    cupy, torch = ModuleType("cupy"), ModuleType("torch")
    cupy.empty_like = lambda v: CupyArray(np.full_like(v.values, np.nan), v.number)  # type: ignore
    cupy.empty = lambda shape, kind: CupyArray(np.full(shape, 7, kind))  # type: ignore
    cupy.asarray = CupyArray  # type: ignore
    cupy.ascontiguousarray = lambda v: v.contiguous()  # type: ignore
    cupy.cuda = SimpleNamespace(get_current_stream=lambda: stream("cupy"))  # type: ignore
    torch.empty_like = lambda v: TorchTensor(np.full_like(v.values, np.nan), v.number)  # type: ignore
    torch.view_as_real = lambda v: TorchTensor(  # type: ignore
        v.values.view(v.values.real.dtype).reshape(-1, 2), v.number
    )
    torch.view_as_complex = lambda v: TorchTensor(  # type: ignore
        v.values.view(np.result_type(v.values, np.complex64)).reshape(-1), v.number
    )
    torch.cuda = SimpleNamespace(current_stream=stream)  # type: ignore
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "torch", torch)


@contextlib.contextmanager
def nothing_downloaded() -> Iterator[None]:
    """Check that no fake array is asked for a copy on the host."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CupyArray, "get", lambda self: pytest.fail("copied to the host"))
        yield
