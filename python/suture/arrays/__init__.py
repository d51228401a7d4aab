# SPDX-License-Identifier: Apache-2.0
"""These modules handle the arrays and volumes that pipelines read and return."""
