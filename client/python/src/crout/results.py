# SPDX-License-Identifier: Apache-2.0
"""The types of the server's results.

Each type is defined in its own module, with the conversion from the server's message.
"""

from crout._eliminated import Complement, EchelonForm, complement, echelon_form
from crout._factor_record import (
    FactorPage,
    FactorRecord,
    Iterations,
    SlogDet,
    factor_page,
    factor_record,
    lease_end,
)
from crout._progress import Progress, progress
from crout._series_step import SeriesStep, series_step
from crout._server_info import DeviceStatus, Estimate, ServerInfo, TenantLoad
from crout._solution import Solution, solution
from crout._sparse_info import SparseInfo
from crout._words import timings

__all__ = [
    "Complement",
    "DeviceStatus",
    "EchelonForm",
    "Estimate",
    "FactorPage",
    "FactorRecord",
    "Iterations",
    "Progress",
    "SeriesStep",
    "ServerInfo",
    "SlogDet",
    "Solution",
    "SparseInfo",
    "TenantLoad",
    "complement",
    "echelon_form",
    "factor_page",
    "factor_record",
    "lease_end",
    "progress",
    "series_step",
    "solution",
    "timings",
]
