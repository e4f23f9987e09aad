"""Makes the pages and the picture of the README from the records in bench/results.

python -m tools.results --write     # after a new record
python -m tools.results --check     # exit code 1 where a committed file is out of date
"""
