# SPDX-License-Identifier: Apache-2.0
"""The code that compiles a chain and calls it."""
