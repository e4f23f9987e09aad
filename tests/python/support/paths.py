"""Where the tests find things."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
"""Of the repository."""
SUPPORT = Path(__file__).resolve().parent
"""Of programs that tests start, and of data."""
