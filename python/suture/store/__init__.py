# SPDX-License-Identifier: Apache-2.0
"""A store holds the scans or slides of a cohort as chunks that are read box by box, each with its hash.

`build` makes one from NIfTI files, DICOM series or slides. `open` opens a store, or a folder of other files without conversion. A
store is Zarr v3 with metadata of OME-Zarr 0.5, so that other programs can read it. It needs `pip install 'suture[store]'`.
"""
from .arrays import LazyArray
from .build import Report, build
from .care import Repaired, info, remove, repair, verify
from .case import Case
from .cohort import Cohort, open
from .splits import set_split
from .tiles import Box, Tile, Tiles

__all__ = ["Box", "Case", "Cohort", "LazyArray", "Repaired", "Report", "Tile", "Tiles", "build", "info", "open", "remove",
           "repair", "set_split", "verify"]
