// SPDX-License-Identifier: Apache-2.0
// A product that feeds a sum, which the gate on contraction must report.
extern "C" __global__ void fusible(float* value, float scale, float shift) { *value = *value * scale + shift; }
