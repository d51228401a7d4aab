// SPDX-License-Identifier: Apache-2.0
// Prints the digests of converted label maps, computed on the CPU.
#include "labels.hpp"

#include <memory>

namespace digest_test {

struct host_labels {
  std::vector<std::shared_ptr<void>> memory;

  template <class T>
  T* room(std::size_t n) {
    auto values = std::make_shared<std::vector<T>>(n);
    memory.push_back(values);
    return values->data();
  }
  template <class T>
  const T* place(const std::vector<T>& values) {
    return values.data();
  }
  template <class T>
  std::vector<T> back(const T* at, std::size_t n) {
    return {at, at + n};
  }
  template <class Plan, class... Bindings>
  void run(const Plan& plan, const Bindings&... bindings) {
    suture::run(cpu{}, plan, bindings...);
  }
};

}  // namespace digest_test

int main() { digest_test::print_labels(digest_test::host_labels{}); }
