# SPDX-License-Identifier: Apache-2.0
"""Arrays and volumes as they come in and go out."""
