# SPDX-License-Identifier: Apache-2.0
"""A reference training run: from a store through the feed to a checkpoint, metrics and predictions on the scans' own grids."""
