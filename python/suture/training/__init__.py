# SPDX-License-Identifier: Apache-2.0
"""These modules do a reference training run: from a store through the feed to a checkpoint, metrics and predictions on the
scans' own grids."""
