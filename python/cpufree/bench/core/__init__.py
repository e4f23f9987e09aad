"""How any contender is measured: processes, rounds, records, what describes the machine."""
