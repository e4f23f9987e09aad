"""`python -m cpufree` is the command `cpufree`."""

from .cli import main

if __name__ == "__main__":
    main()
