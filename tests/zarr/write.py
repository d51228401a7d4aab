# SPDX-License-Identifier: Apache-2.0
"""Writes the arrays of tests/feed/zarr_test.cpp with zarr-python and tensorstore, each of them about a kB.

    python3 write.py FOLDER

Needs zarr 3.1, numcodecs and tensorstore, of tests/python/environment. A voxel holds a number of its own indices, which the
test computes again: 37 * (((c * 6 + z) * 7 + y) * 10 + x) - 5000, as an integer type wraps it around; floats hold an eighth of
it. Arrays with holes hold their fill value where x is 5 or more, and no chunk there.
"""
import shutil
import sys
from pathlib import Path

import numpy as np
import tensorstore as ts
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, ZstdCodec

SHAPE = (6, 7, 10)
CHUNKS = (3, 4, 5)


def values(dtype: str, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    count = np.arange(np.prod(shape), dtype=np.int64).reshape(shape) * 37 - 5000
    return (count / 8).astype(dtype) if np.dtype(dtype).kind == "f" else count.astype(dtype)


def by_zarr(path: Path, dtype: str, *, shape: tuple[int, ...] = SHAPE, holes: bool = False, **options: object) -> None:
    options = {"chunks": CHUNKS, "fill_value": 0, "serializer": BytesCodec(endian="little"), "compressors": ()} | options
    array = zarr.create_array(path, shape=shape, dtype=dtype, zarr_format=3, overwrite=True, **options)
    data = values(dtype, shape)
    if holes:
        array[..., :5] = data[..., :5]
    else:
        array[...] = data


def by_tensorstore(path: Path, dtype: str, codecs: list[dict[str, object]], shards: tuple[int, ...] = CHUNKS) -> None:
    array = ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"},
                     "metadata": {"shape": SHAPE, "data_type": dtype, "codecs": codecs, "fill_value": 7,
                                  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shards}}}},
                    create=True, delete_existing=True).result()
    array[:, :, :5].write(values(dtype)[:, :, :5]).result()


def main(folder: Path) -> None:
    by_zarr(folder / "plain", "int16")
    by_zarr(folder / "holes", "int16", holes=True, fill_value=-1000)
    by_zarr(folder / "float_holes", "float32", holes=True, fill_value=float("nan"))
    by_zarr(folder / "dots", "uint8", chunk_key_encoding={"name": "v2", "separator": "."})
    for codec in ("lz4", "zstd"):
        for shuffle in ("shuffle", "bitshuffle", "noshuffle"):
            by_zarr(folder / f"blosc_{codec}_{shuffle}", "int16", chunks=(6, 7, 10),
                    compressors=BloscCodec(cname=codec, shuffle=shuffle, typesize=2))
    by_zarr(folder / "zstd", "uint16", compressors=ZstdCodec(level=3))
    by_zarr(folder / "gzip", "int32", chunks=(6, 7, 10), compressors=GzipCodec(level=5))
    by_zarr(folder / "zstd_crc32c", "float16", compressors=[ZstdCodec(level=3), Crc32cCodec()])
    by_zarr(folder / "channels", "uint8", shape=(2, *SHAPE), chunks=(1, 3, 4, 5), dimension_names=("c", "z", "y", "x"))
    for where in ("start", "end"):
        by_zarr(folder / f"sharded_{where}", "int16", holes=True, fill_value=3, chunks=(6, 8, 10), compressors=None,
                serializer=ShardingCodec(chunk_shape=CHUNKS[:1] + (4, 5), index_location=where,
                                         codecs=[BytesCodec(), BloscCodec(cname="zstd", typesize=2, shuffle="bitshuffle")]))
    by_tensorstore(folder / "tensorstore", "int16", [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "bitshuffle", "typesize": 2, "blocksize": 0}}])
    by_tensorstore(folder / "tensorstore_sharded", "int16", [
        {"name": "sharding_indexed", "configuration": {
            "chunk_shape": CHUNKS, "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 3}}]}}],
        shards=(6, 8, 10))
    # A case as suture.store lays it out: a group with the grid, the image and its label map.
    case = zarr.create_group(folder / "case", zarr_format=3)
    grid = {"extents": SHAPE, "spacing": [20, 10, 10], "origin": [-7, 8, 9.5], "direction": [1, 0, 0, 0, 0, -1, 0, 1, 0]}
    case.attrs["suture"] = {"store": 1, "kind": "volume", "grid": grid, "labels": {"path": "labels/labels", "grid": grid}}
    by_zarr(folder / "case/0", "int16", chunks=SHAPE, compressors=ZstdCodec(level=3))
    by_zarr(folder / "case/labels/labels/0", "uint8", chunks=SHAPE, compressors=ZstdCodec(level=3))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    main(target)
