# SPDX-License-Identifier: Apache-2.0
"""Arrays and volumes that pipelines read and return."""
