# SPDX-License-Identifier: Apache-2.0
"""The operations that chains are made of."""
