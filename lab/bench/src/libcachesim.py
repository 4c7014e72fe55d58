"""Hit ratios of S3-FIFO (with the store's parameters) and LRU for a file of 32-bit keys: DENSE ENTRIES."""

import os
import sys
import tempfile

import libcachesim
import numpy

dense, entries = sys.argv[1], int(sys.argv[2])
keys = numpy.fromfile(dense, dtype="<u4")
# libcachesim's own format: time, key, size, when the key comes next (unknown).
requests = numpy.zeros(
    len(keys), dtype=numpy.dtype([("time", "<u4"), ("key", "<u8"), ("size", "<u4"), ("next", "<i8")])
)
requests["key"] = keys.astype("u8") + 1
requests["size"] = 1
requests["next"] = -1

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "trace")
    requests.tofile(path)

    def ratio(cache):
        reader = libcachesim.TraceReader(path, libcachesim.TraceType.ORACLE_GENERAL_TRACE)
        return 100 * (1 - cache.process_trace(reader)[0])

    s3_fifo = libcachesim.S3FIFO(
        entries, hashpower=18, small_size_ratio=0.5, ghost_size_ratio=1.5, move_to_main_threshold=2
    )
    lru = libcachesim.LRU(entries, hashpower=18)
    print("RATIOS", ratio(s3_fifo), ratio(lru))
