# SPDX-License-Identifier: Apache-2.0
"""These modules compile a chain and call it."""
