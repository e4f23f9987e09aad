"""Wheels for all versions of Python and for two processors: made, and tried where nothing else is.

python -m tools.wheels.build [--gpu]   # into dist, or dist/gpu
python -m tools.wheels.tried FOLDER    # installs each into environments of their own, and solves
"""
