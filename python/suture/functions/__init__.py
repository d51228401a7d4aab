# SPDX-License-Identifier: Apache-2.0
"""Functions on arrays that are no chains: fits, masks, patches, geometry."""
