# SPDX-License-Identifier: Apache-2.0
# Sets `python` to an interpreter with NumPy and pytest: SUTURE_PYTHON, by default python3, or that of the distribution where
# python3 is another without them. Ends with 77, which ctest reports as skipped, where there is none. Sourced by bash.
for python in "${SUTURE_PYTHON:-python3}" ${SUTURE_PYTHON-/usr/bin/python3} none; do
  "$python" -c 'import numpy, pytest' 2>/dev/null && break
done
if [[ $python == none ]]; then
  echo "skipped: ${SUTURE_PYTHON:-python3} has no NumPy or no pytest; SUTURE_PYTHON names another"
  exit 77
fi
