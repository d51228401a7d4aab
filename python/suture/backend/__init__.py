# SPDX-License-Identifier: Apache-2.0
"""What turns a chain into compiled code and calls it."""
