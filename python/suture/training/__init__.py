# SPDX-License-Identifier: Apache-2.0
"""These modules run a reference training, from a store through the feed to a checkpoint, metrics and predictions on the grids of the
scans."""
