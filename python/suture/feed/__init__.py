# SPDX-License-Identifier: Apache-2.0
"""A feed reads the samples of a cohort for training, in an order that does not depend on the number of ranks."""
from .feed import Epoch, Feed
from .order import Order
from .statistics import Statistics

__all__ = ["Epoch", "Feed", "Order", "Statistics"]
