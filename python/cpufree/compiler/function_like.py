"""An object in the place of a function: bound to objects, copied and pickled as functions are."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class FunctionLike:
    """Stands for a function: has its names, and is a method where the function would be one."""

    receiver: tuple[Any, ...] = ()
    """The object whose method this is: the first argument of all calls."""
    __signature__: inspect.Signature
    """Of a method: without its object."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.signature = inspect.signature(function)
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def __get__(self, instance: Any, owner: Any = None) -> Self:
        """Return the program as a method of an object: functions are bound so, too."""
        return self if instance is None or self.receiver else self._bound(instance)

    def _bound(self, instance: Any) -> Self:
        bound = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound.receiver, bound.__signature__ = (instance,), self._signature_of_method
        return bound

    @cached_property
    def _signature_of_method(self) -> inspect.Signature:
        return self.signature.replace(parameters=[*self.signature.parameters.values()][1:])

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Let pickle and copy.deepcopy take a program by its name, as they take functions."""
        if self.receiver:
            return getattr, (self.receiver[0], self.function.__name__)
        found: Any = sys.modules.get(self.function.__module__)
        for part in self.function.__qualname__.split("."):
            found = getattr(found, part, None)
        if found is self:
            return str(self.function.__qualname__)
        if found is self.function:
            return type(self), (found,)
        raise PicklingError(
            f"{self.function.__qualname__} of {self.function.__module__} is not this program, so "
            "other processes cannot find it: programs are sent by name; define it at the top of a "
            "module"
        )

    def __copy__(self) -> Self:
        """Return the program itself: functions are copied so, too."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the program itself; of a method, that of a copy of its object."""
        return self._bound(deepcopy(self.receiver[0], memo)) if self.receiver else self
