# SPDX-License-Identifier: Apache-2.0
"""These modules define the operations that chains are made of."""
