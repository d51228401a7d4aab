# SPDX-License-Identifier: Apache-2.0
"""These modules have functions on arrays that are not operations of chains: fits, masks, patches, tiles and inference."""
