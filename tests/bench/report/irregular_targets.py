# SPDX-License-Identifier: Apache-2.0
"""Table of the targets for irregular batches and dynamic batching, with the newest results."""

from report import results as r
from report.table import Table, number

# {largest order: speed-up over cuSOLVER in 16 streams}, for 1000 float64 factorizations with uniform orders. For
# solves, the target is half of this speed-up.
FACTORIZATIONS = {32: 600, 64: 230, 128: 60, 256: 24, 512: 20, 1024: 10}
NOT_BEHIND = 1 / 1.1
LARGE = 6144
HOST_GAIN = 2  # speed-up over a loop of LAPACK on two cores, for orders up to 64
BATCHING_GAIN, OF_EMPTY_CALLS = 10, 0.5  # the easier of these two targets counts
ALONE_EXTRA_US = 20
BATCH_OF_TRANSFER = 1.5


def _at_least(what, target, value, result):
    return [what, f"at least {number(target)}", number(value), "yes" if value >= target else "no", f"`{result['file']}`"]


def _at_most(what, target, value, result):
    return [what, f"at most {number(target)}", number(value), "yes" if value <= target else "no", f"`{result['file']}`"]


def _gpu(result):
    rows = []
    for case in result.get("cases", []):
        at_least = FACTORIZATIONS.get(case["largest"])
        if case["sizes"] == "uniform" and at_least is not None:
            nrhs = case["nrhs"]
            what = f"{case['operation']}{f' of {nrhs}' if nrhs else ''}, orders up to {case['largest']}: times as fast as cuSOLVER in 16 streams"
            rows.append(_at_least(what, at_least / 2 if nrhs else at_least, case["over_cusolver_streams"], result))
    rows += [_at_least(f"getrf, {case['sizes']} orders up to {case['largest']}: times as fast as padded in cublasDgetrfBatched", NOT_BEHIND,
                       case["over_cublas_padded"], result)
             for case in result.get("cases", []) if "over_cublas_padded" in case]
    for case in result.get("few_large", []):
        if case["largest"] == LARGE:
            best = min(value for key, value in case.items() if key.startswith("over_crout_lu") and not key.endswith(("_least", "_most")))
            rows.append(_at_least(f"16 of orders {case['least']} to {LARGE}: times as fast as crout_lu in streams, as many as are best",
                                  NOT_BEHIND, best, result))
    return rows


def _host(result):
    return [_at_least(f"getrf on the host, {case['dtype']}, orders up to 64: times as fast as a loop of LAPACK's on "
                      f"{result.get('cores', 2)} cores", HOST_GAIN, case["gain"], result)
            for case in result["cases"] if case["operation"] == "getrf" and case["largest"] == 64]


def _dynamic_batch(result):
    rows = []
    for row in result.get("batching_gain", []):
        gain_is_easier = BATCHING_GAIN * row["of_empty_calls"] / row["gain"] <= OF_EMPTY_CALLS
        what = f"{row['clients']} clients, order {row['n']}: "
        rows.append(_at_least(what + "times as many calls a second as without", BATCHING_GAIN, row["gain"], result)
                    if gain_is_easier else
                    _at_least(what + "share of the calls that compute nothing", OF_EMPTY_CALLS, row["of_empty_calls"], result))
        rows.append(_at_most("one client: microseconds that a call takes longer", ALONE_EXTRA_US, row["alone_extra_us"], result))
    return rows


def _service(result):
    row = result["batch"]
    return [_at_most(f"A batch of 1000 x [1:64] on {r.device_label(result)}, {result.get('cores', '–')} cores: the call in the transfer of its "
                     "bytes", BATCH_OF_TRANSFER, row["of_receive"], result)]


def table(of_kind, newest):
    """Returns the table, or None without results. `of_kind` is {benchmark: results}; newest(results) selects one."""
    rows = []
    for benchmark, make in (("gpu_irr", _gpu), ("host_irr", _host), ("dynamic_batch", _dynamic_batch)):
        result = newest(of_kind.get(benchmark, []))
        rows += make(result) if result else []
    for result in of_kind.get("service", []):
        rows += _service(result) if "batch" in result else []
    return Table("Targets and the newest results", ["quantity", "target", "measured", "met", "result"], rows,
                 "Medians; float64 unless another type is given.") if rows else None
