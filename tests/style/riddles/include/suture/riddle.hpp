// SPDX-License-Identifier: Apache-2.0
// Faults that tests/style/language must see; the sums are read by nothing.
#pragma once

// Of all lanes, to each.
int warp_sum();

// By the rules that hold, sums stay.
int sums();

// For a fixed key, the map is a bijection.
int bijection();

// In order of preference.
int order();
