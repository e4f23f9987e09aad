"""Traces of kernels: who sent what to whom, when, and who waited for whom."""

from cpufree.trace.asked import Recording as Recording
from cpufree.trace.files import load as load
from cpufree.trace.files import save as save
from cpufree.trace.hang import diagnose as diagnose
from cpufree.trace.hang import diagnose_error as diagnose_error
from cpufree.trace.records import Trace as Trace
