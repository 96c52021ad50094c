# SPDX-License-Identifier: Apache-2.0
"""LU factorizations on a Crout server, with an interface like SciPy's.

    import crout

    c = crout.connect("localhost:50051")
    with c.lu_factor(A) as f:      # the factor stays on the server
        x = f.solve(b)

`crout.local()` starts a private server on this machine and returns a client of it.
`crout.aio` has the same interface for asyncio.
"""

from crout._call import RetryPolicy
from crout._device import DeviceArray
from crout._linalg import SparseFactors
from crout._local import LocalClient, local
from crout._options import Algorithm, Precision, Solver, Strategy
from crout._spy import spy
from crout.batch import BatchFactor
from crout.client import Client, connect
from crout.errors import (
    Cancelled,
    CroutError,
    DeadlineExceeded,
    HandleExpired,
    InvalidRequest,
    LinAlgWarning,
    NotConverged,
    NotPermitted,
    NotSupported,
    Overloaded,
    ProtocolError,
    Singular,
    Unavailable,
    UnreadableFile,
)
from crout.factor import Factor
from crout.records import (
    BatchRecord,
    DeviceStatus,
    FactorRecord,
    ServerInfo,
    SlogDet,
    SparseInfo,
    StoreStatus,
    TenantLoad,
    TenantQuota,
)
from crout.results import (
    BatchSolution,
    Complement,
    EchelonForm,
    Estimate,
    Iterations,
    Progress,
    SeriesStep,
    Solution,
)
from crout.series import Entries, LowRank, Values

__version__ = "0.1.0"

__all__ = [
    "Algorithm",
    "BatchFactor",
    "BatchRecord",
    "BatchSolution",
    "Cancelled",
    "Client",
    "Complement",
    "CroutError",
    "DeadlineExceeded",
    "DeviceArray",
    "DeviceStatus",
    "EchelonForm",
    "Entries",
    "Estimate",
    "Factor",
    "FactorRecord",
    "HandleExpired",
    "InvalidRequest",
    "Iterations",
    "LinAlgWarning",
    "LocalClient",
    "LowRank",
    "NotConverged",
    "NotPermitted",
    "NotSupported",
    "Overloaded",
    "Precision",
    "Progress",
    "ProtocolError",
    "RetryPolicy",
    "SeriesStep",
    "ServerInfo",
    "Singular",
    "SlogDet",
    "Solution",
    "Solver",
    "SparseFactors",
    "SparseInfo",
    "StoreStatus",
    "Strategy",
    "TenantLoad",
    "TenantQuota",
    "Unavailable",
    "UnreadableFile",
    "Values",
    "connect",
    "local",
    "spy",
]
