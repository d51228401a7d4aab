# SPDX-License-Identifier: Apache-2.0
"""These modules define pipelines and their plans, and run them."""
