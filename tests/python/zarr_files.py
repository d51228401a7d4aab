# SPDX-License-Identifier: Apache-2.0
"""Boxes of Zarr v3 arrays that zarr-python and tensorstore wrote here, read by suture and held against NumPy.

    python3 zarr_files.py PROGRAM [--time]

PROGRAM is made from zarr_files.cpp. `--time` reads boxes of 160^3 of a scan of 256 x 512 x 512 with tensorstore as well, on
one thread each, and prints MB/s of both. Ends with 77, which ctest reports as skipped, where a library is missing.
"""
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import numpy as np
    import tensorstore as ts
    import zarr
    from zarr.codecs import BloscCodec, GzipCodec, ShardingCodec, ZstdCodec
except ImportError as missing:
    print(f"skipped: {missing}; name a Python with zarr 3 and tensorstore in SUTURE_PYTHON")
    sys.exit(77)


def read(program, path, dtype, boxes, repeat=1):
    text = "\n".join(" ".join(map(str, (*first, *size))) for first, size in boxes)
    done = subprocess.run([program, str(path), dtype, str(repeat)], input=text.encode(), capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{path.name}: {done.stderr.decode()}")
    return np.frombuffer(done.stdout, dtype), float(done.stderr)


def zarr_options(random, shape):
    chunks = tuple(int(random.integers(1, n + 3)) for n in shape)
    codec = [(), BloscCodec(cname="lz4", shuffle="shuffle"), BloscCodec(cname="zstd", shuffle="bitshuffle"), ZstdCodec(),
             GzipCodec()][random.integers(5)]
    if random.random() < .5:
        return {"chunks": chunks, "compressors": codec}
    shards = tuple(n * int(random.integers(1, 4)) for n in chunks)
    return {"chunks": chunks, "shards": shards, "compressors": codec}


def compare(program, folder):
    random = np.random.default_rng(3)
    voxels = 0
    for number in range(60):
        dtype = ("int16", "uint8", "float32")[number % 3]
        shape = tuple(int(n) for n in random.integers(1, 40, 3))
        data = (random.normal(0, 60, shape) * (random.random(shape) < .5)).astype(dtype)
        data[: shape[0] // 2] = 0  # chunks that hold the fill value are in no file
        path = folder / str(number)
        if number % 4 == 3:
            chunk = [int(random.integers(1, n + 3)) for n in shape]
            array = ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"},
                             "metadata": {"shape": shape, "data_type": dtype,
                                          "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}}}},
                            create=True).result()
            array.write(data).result()
        else:
            zarr.create_array(path, shape=shape, dtype=dtype, zarr_format=3, **zarr_options(random, shape))[...] = data
        boxes = [((0, 0, 0), shape)]
        for _ in range(8):
            first = [int(random.integers(n)) for n in shape]
            boxes.append((first, [int(random.integers(1, n - f + 1)) for n, f in zip(shape, first)]))
        got, _ = read(program, path, dtype, boxes)
        expected = np.concatenate([data[tuple(slice(f, f + n) for f, n in zip(*box))].ravel() for box in boxes])
        if got.tobytes() != expected.tobytes():
            sys.exit(f"array {number} differs: {(path / 'zarr.json').read_text()}")
        voxels += got.size
    print(f"{number + 1} arrays, {voxels} voxels in boxes: the same bytes")


def measure(program, folder):
    random = np.random.default_rng(5)
    shape = (256, 512, 512)
    z, y, x = np.ogrid[: shape[0], : shape[1], : shape[2]]
    body = (((y - 256) / 200) ** 2 + ((x - 256) / 230) ** 2 < 1) & (z >= 0)
    data = np.where(body, 40 + 300 * np.sin(z / 9) * np.sin(y / 31) * np.sin(x / 23), -1000)
    data = (data + body * random.normal(0, 12, shape)).astype(np.int16)
    path = folder / "scan"
    zarr.create_array(path, shape=shape, dtype="int16", zarr_format=3, chunks=(64, 64, 64), shards=shape,
                      compressors=BloscCodec(cname="zstd", clevel=3, shuffle="bitshuffle"))[...] = data
    boxes = [([int(random.integers(n - 159)) for n in shape], [160] * 3) for _ in range(12)]
    context = ts.Context({"data_copy_concurrency": {"limit": 1}, "cache_pool": {"total_bytes_limit": 0}})
    source = ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}, context=context).result()
    bytes_read = 12 * 160 ** 3 * 2
    ratios = []
    for _ in range(5):  # in turns: other programs take time from both
        _, own = read(program, path, "int16", boxes)
        start = time.perf_counter()
        for first, size in boxes:
            source[tuple(slice(f, f + n) for f, n in zip(first, size))].read().result()
        theirs = time.perf_counter() - start
        ratios.append(theirs / own)
        print(f"suture {bytes_read / own / 1e6:.0f} MB/s, tensorstore {bytes_read / theirs / 1e6:.0f} MB/s")
    print(f"median ratio {np.median(ratios):.2f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        (measure if "--time" in sys.argv[2:] else compare)(sys.argv[1], Path(place))
