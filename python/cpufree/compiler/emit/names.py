"""Names of programs in the text of kernels, of which compilers take ASCII alone."""

from __future__ import annotations

import re

_MARK = "_0u"


def in_ascii(text: str) -> str:
    """Return the text of a kernel in which letters beyond ASCII are written by their number.

    Names that differ stay so: a name that has the mark of a number already gets one in its stead.
    All names have a prefix besides (f_, v_), so none is a word of C++, a macro, or one of the
    runtime's.

    >>> in_ascii("f_φ + f_u")
    'f__0u3c6_ + f_u'
    >>> in_ascii("f__0u3c6_")
    'f__0u5f_0u3c6_'
    """
    return re.sub(rf"{_MARK}|[^\x00-\x7f]", _written, text)


def _written(found: re.Match[str]) -> str:
    # What follows the mark's underscore is as it was: only the underscore is written by its number.
    return f"{_MARK}{ord(found[0][0]):x}_{found[0][1:]}"
