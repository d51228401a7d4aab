# SPDX-License-Identifier: Apache-2.0
"""The feed brings the samples of a cohort to the training step, in an order that depends on no number of machines."""
