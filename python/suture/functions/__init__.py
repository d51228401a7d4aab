# SPDX-License-Identifier: Apache-2.0
"""These modules have functions on arrays that are no chains: fits, masks, patches, inference."""
