# SPDX-License-Identifier: Apache-2.0
"""Pipelines, their plans and what runs them."""
