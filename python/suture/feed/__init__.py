# SPDX-License-Identifier: Apache-2.0
"""The feed brings the samples of a cohort to the training step, in an order that depends on no number of machines."""
from .feed import Epoch, Feed
from .order import Order
from .statistics import Statistics

__all__ = ["Epoch", "Feed", "Order", "Statistics"]
