// SPDX-License-Identifier: Apache-2.0
// The CUDA executor. A run launches a few kernels on the caller's stream and can be captured in a CUDA graph: it
// allocates no device memory, does not synchronize and copies nothing back. Parameters travel by value in kernel
// arguments, so a plan may be changed or destroyed as soon as run returns.
#pragma once

#include "architecture.cuh"

#include <cuda_runtime.h>

#include <source_location>

#include "../../base/numeric_cuda.cuh"
#include "../common/checks.hpp"
#include "check_cuda.cuh"
#include "coefficients.cuh"
#include "fused.cuh"
#include "levels.cuh"
#include "loop_order.cuh"
#include "records.cuh"
#include "stages.cuh"

namespace suture {

// The executor of runs on a stream. `workspace` is device memory of at least workspace_bytes(plan, ...), which nothing
// else may change until the run is done on the stream. Views and workspace in host memory that is neither pinned,
// registered nor managed are refused, unless check_memory is false.
struct cuda {
  cudaStream_t stream = nullptr;
  std::span<std::byte> workspace = {};
  std::source_location at = std::source_location::current();  // where the executor was created; named in errors
  bool check_memory = true;
};

// Device memory that the object owns and that grows by reserve, never in a run. It begins as zeros, so a graph
// (run_loaded) that is launched before the first load finds no records and writes nothing.
class cuda_workspace {
public:
  cuda_workspace() = default;
  explicit cuda_workspace(std::size_t bytes) { reserve(bytes); }
  cuda_workspace(cuda_workspace&& other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
    other.bytes_ = 0;
  }
  cuda_workspace& operator=(cuda_workspace&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~cuda_workspace() {
    if (data_ != nullptr) cudaFree(data_);  // cudaFree(nullptr) creates a context, or ends a capture
  }

  // Makes room for at least this many bytes. If the memory must grow, its contents are lost, and the call waits for the
  // device: for work that uses the old memory, and until the new one is cleared.
  void reserve(std::size_t bytes) {
    if (bytes <= bytes_) return;
    if (data_ != nullptr) check_cuda(cudaFree(data_), "cuda_workspace");
    data_ = nullptr;
    bytes_ = 0;
    check_cuda(cudaMalloc(&data_, bytes), "cuda_workspace");
    bytes_ = bytes;
    check_cuda(cudaMemsetAsync(data_, 0, bytes, cudaStreamPerThread), "cuda_workspace");
    check_cuda(cudaStreamSynchronize(cudaStreamPerThread), "cuda_workspace");
  }
  std::span<std::byte> span() const { return {static_cast<std::byte*>(data_), bytes_}; }
  operator std::span<std::byte>() const { return span(); }

private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

namespace detail {

// Throws if an earlier CUDA call left an error, which the check after a launch would otherwise report as that launch's.
inline void check_for_earlier_error(const cuda& exec) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  fail({"cuda"}, cudaGetErrorName(status), " (", cudaGetErrorString(status),
       ") was left by a CUDA call before the one at ", exec.at.file_name(), ":", exec.at.line(),
       ", of which nothing has been launched");
}

// Throws if a pointer is to host memory that a kernel cannot access. It costs one call of the runtime, which neither
// waits nor allocates and is allowed while a stream is captured.
inline void check_memory(const cuda& exec, const void* p, const site& where, std::string_view role = "") {
  if (!exec.check_memory || p == nullptr) return;
  cudaPointerAttributes found{};
  if (cudaPointerGetAttributes(&found, p) != cudaSuccess) {
    cudaGetLastError();  // clears the error, which the check after a launch would report
    return;
  }
  require(found.type != cudaMemoryTypeUnregistered, where, role, "pointer ", p,
          " is host memory; give device memory, or host memory that is pinned, registered or managed (check_memory = "
          "false of the executor skips this check)");
}

// Returns check_memory bound to an executor.
inline auto memory_check(const cuda& exec) {
  return [&exec](const void* p, const site& where, std::string_view role) { check_memory(exec, p, where, role); };
}

// Checks for earlier errors and that the workspace is large enough and in memory that kernels can access.
inline void check_device_workspace(const cuda& exec, std::size_t needed, const site& where = {"workspace"},
                                   std::string_view role = "") {
  check_for_earlier_error(exec);
  check_workspace(exec.workspace.data(), exec.workspace.size(), needed, where, role);
  if (needed > 0) check_memory(exec, exec.workspace.data(), where, role);
}

// Queues the upload of a list by value in kernel arguments: of one kernel, or of several for a long list.
template <int Bytes, class T>
void upload_list_in(const cuda& exec, std::string_view name, std::span<const T> from, T* to) {
  record_chunk<T, Bytes> chunk{};
  for (std::size_t first = 0; first < from.size(); first += chunk.capacity) {
    const std::size_t n = std::min<std::size_t>(chunk.capacity, from.size() - first);
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(first), n, chunk.records);
    const auto blocks = static_cast<unsigned>(std::max<std::size_t>(n * sizeof(T) / (8 * upload_threads), 1));
    upload_list_kernel<T, Bytes>
        <<<blocks, upload_threads, 0, exec.stream>>>(chunk, to + first, static_cast<unsigned>(n));
    check_cuda(cudaGetLastError(), name, exec.at);
  }
}
template <class T>
void upload_list(const cuda& exec, std::string_view name, const std::vector<T>& from, T* to) {
  if (from.size() * sizeof(T) <= carried_bytes)
    upload_list_in<carried_bytes>(exec, name, std::span(from), to);
  else
    upload_list_in<largest_arguments>(exec, name, std::span(from), to);
}

// Queues the upload of the records of a batch, in kernel arguments of at most `Bytes`.
template <int Bytes, class Plan, class Record, class... Bindings>
void upload(const cuda& exec, const Plan& plan, bool to_output, const workspace_layout& l, Record* records,
            const Bindings&... bindings) {
  using chunk_type = record_chunk<Record, Bytes>;
  workspace_cursor used;
  for (std::size_t first = 0; first < plan.size(); first += chunk_type::capacity) {
    const std::size_t n = std::min<std::size_t>(chunk_type::capacity, plan.size() - first);
    chunk_type chunk;
    for (std::size_t i = 0; i < n; ++i)
      chunk.records[i] = make_fused_record<evaluator<typename Plan::pipeline_type, Bindings...>>(
          plan, first + i, to_output, l, exec.workspace.data(), used, bindings...);
    upload_kernel<Record, Bytes><<<static_cast<unsigned>(n), upload_threads, 0, exec.stream>>>(chunk, records + first);
    check_cuda(cudaGetLastError(), "upload", exec.at);
  }
}

// Queues the upload of the records of a batch to the beginning of the workspace.
template <class Evaluator, class Plan, class... Bindings>
void upload(const cuda& exec, const Evaluator&, bool to_output, const workspace_layout& l, const Plan& plan,
            const Bindings&... bindings) {
  using R = typename Evaluator::record_type;
  auto* records = reinterpret_cast<R*>(exec.workspace.data());
  if (plan.size() * sizeof(R) <= carried_bytes)
    upload<carried_bytes>(exec, plan, to_output, l, records, bindings...);
  else
    upload<largest_arguments>(exec, plan, to_output, l, records, bindings...);
}

// Calls launch(std::bool_constant<OneChannel>), true if there is a kernel for one channel and every input has one
// channel.
template <class Evaluator, class Plan, class Launch, class... Bindings>
void by_channels(const Plan& plan, const Launch& launch, const Bindings&... bindings) {
  if constexpr (has_one_channel_kernel<Evaluator>)
    if (one_channel(plan, bindings...)) return launch(std::true_type{});
  launch(std::false_type{});
}

// Queues the kernel of the fused part, with label maps or without. `carried` has records that travel in the
// arguments of the kernel; if it is empty, they are in the workspace. See count_tiles about any_batch.
template <bool WithLabels, class Paths, class Evaluator, class Carried, class Plan, class... Bindings>
void launch_fused(const cuda& exec, const Evaluator& e, const Carried& carried, bool any_batch, const Plan& plan,
                  const Bindings&... bindings) {
  const tile_counts tiles = count_tiles<Evaluator, Paths, WithLabels>(any_batch, plan, bindings...);
  by_channels<Evaluator>(
      plan,
      [&](auto one_channel) {
        fused_kernel<WithLabels, Evaluator, one_channel, Paths>
            <<<tile_blocks(tiles, plan), fused_threads, 0, exec.stream>>>(e, carried, tiles);
      },
      bindings...);
  check_cuda(cudaGetLastError(), "run", exec.at);
}

template <class Evaluator>
using carried_by = carried_records<typename Evaluator::pipeline_type, typename Evaluator::record_type>;

// Queues the fused part of a batch whose records are uploaded, and before it the kernels of B-spline coefficients.
template <bool WithLabels, class Paths, class Evaluator, class Plan, class... Bindings>
void run_fused(const cuda& exec, const Evaluator& e, bool any_batch, const Plan& plan, const Bindings&... bindings) {
  prefilter(exec, e, plan, bindings...);
  launch_fused<WithLabels, Paths>(exec, e, carried_by<Evaluator>{}, any_batch, plan, bindings...);
}

// Queues the upload of the records and the fused part, in one kernel if possible.
template <bool WithLabels, class Paths, class Evaluator, class Plan, class... Bindings>
void upload_and_run_fused(const cuda& exec, const Evaluator& e, const workspace_layout& l, const Plan& plan,
                          const Bindings&... bindings) {
  if constexpr (carried_by<Evaluator>::possible) {
    carried_by<Evaluator> carried;
    if (plan.size() <= static_cast<std::size_t>(carried.capacity)) {
      carried.to = reinterpret_cast<typename Evaluator::record_type*>(exec.workspace.data());
      workspace_cursor used;
      for (std::size_t i = 0; i < plan.size(); ++i)
        carried.records[i] =
            make_fused_record<Evaluator>(plan, i, WithLabels, l, exec.workspace.data(), used, bindings...);
      launch_fused<WithLabels, Paths>(exec, e, carried, false, plan, bindings...);
      return;
    }
  }
  upload(exec, e, WithLabels, l, plan, bindings...);
  run_fused<WithLabels, Paths>(exec, e, false, plan, bindings...);
}

// Queues the clearing of the sums of stages. Uploading a record clears its sums too, but a graph may be launched again
// without an upload.
inline void queue_clearing_of_sums(const cuda& exec, const workspace_layout& l) {
  const auto clear = [&](std::size_t from, std::size_t to) {
    if (to > from) check_cuda(cudaMemsetAsync(exec.workspace.data() + from, 0, to - from, exec.stream), "run", exec.at);
  };
  clear(l.sums, l.statistics);
  clear(l.spectra, l.vectors);
}

// Checks plan, bindings and workspace and returns the evaluator of the run. The evaluator reads records in the workspace,
// which an upload that is queued later puts there.
template <class Plan, class... Bindings>
auto checked(const cuda& exec, const workspace_layout& l, const Plan& plan, const Bindings&... bindings) {
  using R = typename evaluator<typename Plan::pipeline_type, Bindings...>::record_type;
  static_assert(sizeof(R) <= largest_arguments,
                "suture: the parameters of one sample exceed the arguments of a kernel");
  check_bindings(plan, bindings...);
  if constexpr (Plan::pipeline_type::is_staged) {
    for (std::size_t i = 0; i < plan.size(); ++i)
      check_planes_of_stages(plan.output_grid(i).extents, {"run", static_cast<std::int64_t>(i)});
  }
  check_device_workspace(exec, l.bytes);
  each_bound_pointer(memory_check(exec), bindings...);
  each_control_values(plan, memory_check(exec));
  plan.each_fitted(memory_check(exec));
  return make_evaluator(reinterpret_cast<const R*>(exec.workspace.data()), plan, bindings...);
}

}  // namespace detail

// Checks everything, queues the work that fills the workspace, and returns an evaluator that kernels launched later on
// the same stream may use. The workspace must not change until they are done.
template <class Plan, class... Bindings>
auto prepare(const cuda& exec, const Plan& plan, const Bindings&... bindings) {
  static_cast<void>(detail::all_bound<Plan, Bindings...>());
  using P = typename Plan::pipeline_type;
  const workspace_layout l = detail::layout(plan, bindings...);
  const auto evaluate = detail::checked(exec, l, plan, bindings...);
  if constexpr (P::is_staged) {
    detail::upload_and_run_fused<false, detail::cuda_paths>(exec, evaluate, l, plan, bindings...);
    detail::run_stages<P::schedule.stage_count - 1>(exec, evaluate, false, false, plan, bindings...);
  } else {
    detail::upload(exec, evaluate, false, l, plan, bindings...);
    detail::prefilter(exec, evaluate, plan, bindings...);
  }
  return evaluate;
}

namespace detail {

// Queues a plan, whose fused kernel chooses among the paths of a list (path.cuh), ways to compute a block. Tests and benchmarks pass other lists.
template <class Paths, class Plan, class... Bindings>
void run_by(const cuda& exec, const Plan& plan, const Bindings&... bindings) {
  (require_output(bindings), ...);
  using P = typename Plan::pipeline_type;
  const workspace_layout l = layout(plan, bindings...);
  const auto evaluate = checked(exec, l, plan, bindings...);
  upload_and_run_fused<true, Paths>(exec, evaluate, l, plan, bindings...);
  queue_levels(exec, evaluate, bindings...);
  if constexpr (P::is_staged) run_stages<P::schedule.stage_count>(exec, evaluate, true, false, plan, bindings...);
}

}  // namespace detail

// Queues a plan on the stream of an executor. Everything is checked first: if a check fails, nothing has been launched.
template <class Plan, class... Bindings>
void run(const cuda& exec, const Plan& plan, const Bindings&... bindings) {
  if constexpr (detail::all_bound<Plan, Bindings...>()) detail::run_by<detail::cuda_paths>(exec, plan, bindings...);
}

// A description of the work that run_loaded has queued. `load` compares later batches with it.
template <class Evaluator>
struct loaded_run {
  Evaluator evaluate;
  std::size_t samples = 0;
  extent3 extents{0, 0, 0};            // of the outputs, the largest along each axis
  std::vector<std::int64_t> channels;  // of the inputs: all bindings of sample 0, of sample 1, ...
  std::size_t levels[Evaluator::pairs] = {};
};

namespace detail {

template <class Binding>
std::size_t level_count(const Binding& b) {
  if constexpr (Binding::has_levels)
    return b.levels.count;
  else
    return 0;
}

template <class Evaluator, class Plan, class... Bindings>
loaded_run<Evaluator> loaded_run_of(const Evaluator& e, const Plan& plan, const Bindings&... bindings) {
  loaded_run<Evaluator> queued{e, plan.size(), largest_extents(plan), {}, {level_count(bindings)...}};
  for (std::size_t i = 0; i < plan.size(); ++i) (queued.channels.push_back(bindings.source(i).channels), ...);
  return queued;
}

// Throws if a batch differs in a value that the kernels of run_loaded have in their arguments. Values of label
// conversions cannot be compared.
template <class Evaluator, class Plan, class... Bindings>
void check_fits(const loaded_run<Evaluator>& queued, const Evaluator& e, const Plan& plan,
                const Bindings&... bindings) {
  constexpr std::string_view name = "load", captured = " that run_loaded was called with";
  require(e.records == queued.evaluate.records, {name}, "the workspace begins at ", static_cast<const void*>(e.records),
          ", the one", captured, " at ", static_cast<const void*>(queued.evaluate.records));
  require(plan.size() == queued.samples, {name}, plan.size(), " samples, the plan", captured, " has ", queued.samples);
  const auto &rule = e.rule, &other = queued.evaluate.rule;
  require(rule.label_outside == other.label_outside, {name}, "label_outside ", rule.label_outside, ", the plan",
          captured, " has ", other.label_outside);
  if constexpr (requires { rule.border.value; })
    require(float_bits(rule.border.value) == float_bits(other.border.value), {name}, "border value ", rule.border.value,
            ", the plan", captured, " has ", other.border.value);
  if constexpr (ends_at_rim<typename Plan::pipeline_type::border_type>)
    require(rule.border.rim == other.border.rim, {name}, "the rim of the border is not that of the plan", captured);
  std::size_t channel = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const extent3& n = plan.output_grid(i).extents;
    const auto sample = static_cast<std::int64_t>(i);
    for (int k = 0; k < 3; ++k)
      require(n[k] <= queued.extents[k], {name, sample}, "output extents ", n, " exceed ", queued.extents,
              ", the largest of the plan", captured);
    const auto compare = [&]<class B>(const B& b) {
      const std::int64_t expected = queued.channels[channel++];
      require(b.source(i).channels == expected, {B::name, sample}, b.source(i).channels, " channels, the view",
              captured, " has ", expected);
    };
    (compare(bindings), ...);
  }
  std::size_t pair = 0;
  const auto compare_levels = [&]<class B>(const B& b) {
    const std::size_t most = queued.levels[pair++];
    require(level_count(b) <= most, {B::name}, level_count(b), " levels, the labels", captured, " have ", most);
  };
  (compare_levels(bindings), ...);
}

}  // namespace detail

// These functions do the work of run in two halves, so that one captured graph serves every batch: `load` queues the
// upload of what describes a batch, run_loaded queues the kernels that compute it. Capture run_loaded once; then, for
// each batch, call `load` with its plan and views and launch the graph. A graph that is launched again without `load`
// repeats the draws on the current contents of the same memory.
//
// `load` uploads pointers, extents, spacings, strides and draws, so volumes and outputs may change from batch to batch.
// These must be the same as at the capture: the workspace, the type of the pipeline, the values of its sampling and
// label conversions, the element types, the number of samples and the channels of each. Outputs may be at most as large
// along each axis as the largest at the capture, with at most as many levels of deep supervision. `load` with the result of
// run_loaded refuses a batch that does not fit, except for differing label conversions. If nothing of this pipeline was
// loaded to the workspace, the graph writes nothing.
template <class Plan, class... Bindings>
auto run_loaded(const cuda& exec, const Plan& plan, const Bindings&... bindings) {
  static_cast<void>(detail::all_bound<Plan, Bindings...>());
  (detail::require_output(bindings), ...);
  using P = typename Plan::pipeline_type;
  const workspace_layout l = detail::layout(plan, bindings...);
  const auto evaluate = detail::checked(exec, l, plan, bindings...);
  detail::queue_clearing_of_sums(exec, l);
  detail::run_fused<true, detail::cuda_paths>(exec, evaluate, true, plan, bindings...);
  detail::queue_levels(exec, evaluate, bindings...);
  if constexpr (P::is_staged)
    detail::run_stages<P::schedule.stage_count>(exec, evaluate, true, true, plan, bindings...);
  return detail::loaded_run_of(evaluate, plan, bindings...);
}
template <class Plan, class... Bindings>
void load(const cuda& exec, const Plan& plan, const Bindings&... bindings) {
  static_cast<void>(detail::all_bound<Plan, Bindings...>());
  (detail::require_output(bindings), ...);
  const workspace_layout l = detail::layout(plan, bindings...);
  detail::upload(exec, detail::checked(exec, l, plan, bindings...), true, l, plan, bindings...);
}
template <class Evaluator, class Plan, class... Bindings>
void load(const cuda& exec, const loaded_run<Evaluator>& queued, const Plan& plan, const Bindings&... bindings) {
  static_cast<void>(detail::all_bound<Plan, Bindings...>());
  static_assert(std::is_same_v<Evaluator, evaluator<typename Plan::pipeline_type, Bindings...>>,
                "suture: load takes a plan of the pipeline that run_loaded was called with, and views of its types");
  (detail::require_output(bindings), ...);
  const workspace_layout l = detail::layout(plan, bindings...);
  const auto evaluate = detail::checked(exec, l, plan, bindings...);
  detail::check_fits(queued, evaluate, plan, bindings...);
  detail::upload(exec, evaluate, true, l, plan, bindings...);
}

}  // namespace suture
