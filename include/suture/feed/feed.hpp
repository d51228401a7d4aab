// SPDX-License-Identifier: Apache-2.0
// A feed makes batches before the training takes them: it plans a batch, reads the boxes of its samples by threads,
// runs the plan on them, and returns the results in order. This header is not part of suture.hpp: the feed starts
// threads, for which programs are linked with -pthread. For CUDA include feed.cuh.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "../plan/source_box.hpp"
#include "memory.hpp"

namespace suture {

// feed(executor, plans, settings, sources...): plans(step) is called for step 0, 1, 2, ... on a thread of the feed and
// returns an optional feed_request; an empty one ends the feed. The bits are those of running each plan on whole
// volumes, whatever the settings.
//
// next() is called by one thread. It releases the batch that it returned before and uses its memory again. On a device
// the outputs are ready in the order of the executor's stream; if another stream uses them, the executor's stream must
// wait for it before the next call. next() throws the exception of a reader in the place of its batch, with the name of
// the case, and the next call returns the next batch. An exception of plans(step), and a request that does not fit the
// readers or most_bytes, end the feed.
template <class Executor, class Plans, class... Sources>
class feed {
  static_assert(sizeof...(Sources) > 0, "suture: a feed has one image_source or label_source at least");

public:
  using plan_type = decltype(std::declval<Plans&>()(std::size_t{})->plan);
  using batch_type = feed_batch<plan_type, Sources...>;

  feed(const Executor& on, Plans plans, const feed_settings& s, Sources... sources)
      : executor_(on), plans_(std::move(plans)), settings_(s), sources_(sources...) {
    constexpr site where{"feed"};
    require(on.workspace.empty(), where, "workspace: expected none, got ", on.workspace.size(),
            " bytes. A feed holds its own");
    require(s.depth >= 1 && s.depth <= 1024, where, "depth: expected 1 to 1024 batches, got ", s.depth);
    require(s.threads >= 1 && s.threads <= 1024, where, "threads: expected 1 to 1024, got ", s.threads);
    for (int i = 0; i < s.depth; ++i) slots_.push_back(std::make_unique<slot>(executor_));
    try {
      threads_.emplace_back([this] { plan_batches(); });
      threads_.emplace_back([this] { finish_batches(); });
      for (int i = 0; i < s.threads; ++i) threads_.emplace_back([this] { read_boxes(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  feed(const feed&) = delete;
  feed& operator=(const feed&) = delete;
  ~feed() { stop(); }

  // Returns the next batch, or nullptr after the last. It stays valid until the following call.
  const batch_type* next() {
    release();
    const double asked = now();
    slot& s = *slots_[step_ % slots_.size()];
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return s.state == slot_state::ready || step_ >= end_; });
      if (step_ >= end_) return nullptr;
    }
    ++step_;
    try {
      if (s.failure) std::rethrow_exception(s.failure);
      if constexpr (!detail::feed_executor<Executor>::runs_ahead) s.memory.run([&] { run_plan(s); });
    } catch (...) {
      s.memory.release();
      give_back(s);
      throw;
    }
    s.times.delivered = now();
    s.times.waited = s.times.delivered - asked;
    delivered_ = &s;
    return &s.batch;
  }

  // Returns the statistics. On a device this waits until the released batches are done.
  feed_statistics statistics() {
    record_all_times();
    const std::lock_guard guard(recording_);
    return statistics_;
  }
  // Returns the times of the last batches, in order.
  std::vector<feed_times> times() {
    record_all_times();
    const std::lock_guard guard(recording_);
    return {kept_.begin(), kept_.end()};
  }

private:
  enum class slot_state { free, reading, read, ready };
  struct slot {
    explicit slot(const detail::feed_executor<Executor>& on) : memory(on) {}
    slot_state state = slot_state::free;
    bool times_recorded = true;
    detail::feed_memory<Executor> memory;
    batch_type batch;
    std::vector<voxel_box> boxes;
    std::tuple<std::vector<view<const typename Sources::element>>...> in;
    std::array<std::vector<std::size_t>, sizeof...(Sources)> input_offsets, output_offsets;  // in bytes
    std::size_t input_bytes = 0, output_bytes = 0, workspace_bytes = 0;
    std::size_t left = 0;                                          // boxes, or parts of them, yet to be read
    std::size_t failed = std::numeric_limits<std::size_t>::max();  // number of the first task that failed
    std::exception_ptr failure;
    feed_times times;
  };
  struct task {
    slot* of;
    std::size_t number, source, sample, part;
  };
  template <std::size_t K>
  using source_number = std::integral_constant<std::size_t, K>;
  template <std::size_t K>
  using source = std::tuple_element_t<K, std::tuple<Sources...>>;
  // with_sources calls f(source_number<K>...) once for all sources, each_source f(source_number<K>) for one after the
  // other.
  template <class F>
  static auto with_sources(const F& f) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return f(source_number<K>{}...); }
    (std::index_sequence_for<Sources...>{});
  }
  template <class F>
  static void each_source(const F& f) {
    with_sources([&](auto... k) { (f(k), ...); });
  }

  double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  void stop() {
    {
      const std::lock_guard guard(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }
  // Waits until a condition holds, checked under the lock; returns false if the feed ends first.
  template <class Holds>
  bool wait(std::unique_lock<std::mutex>& lock, const Holds& holds) {
    changed_.wait(lock, [&] { return stopped_ || holds(); });
    return !stopped_;
  }

  // Releases the batch that the caller holds, if any.
  void release() {
    if (delivered_ == nullptr) return;
    slot& s = *delivered_;
    delivered_ = nullptr;
    s.times.released = now();
    s.memory.release();
    {
      const std::lock_guard guard(mutex_);
      s.times_recorded = false;
    }
    if constexpr (detail::feed_executor<Executor>::runs_ahead) record_times(s);
    give_back(s);
  }
  void give_back(slot& s) {
    {
      const std::lock_guard guard(mutex_);
      s.failure = nullptr;
      s.state = slot_state::free;
    }
    changed_.notify_all();
  }

  // Adds the times of a released batch to the statistics, in the order of batches. Several threads may call it.
  void record_times(slot& s) {
    const std::lock_guard guard(recording_);
    {
      const std::lock_guard state(mutex_);
      if (s.times_recorded) return;
      s.times_recorded = true;
    }
    feed_times& t = s.times;
    s.memory.fill(t, last_released_);
    feed_statistics& all = statistics_;
    if (all.batches++ == 0)
      all.to_first = t.delivered;
    else
      all.waited += t.waited;
    all.bytes += t.bytes;
    all.reading += t.reading;
    all.copying += t.copy_end - t.copy_begin;
    all.running += t.run_end - t.run_begin;
    all.elapsed = t.released - all.to_first;
    kept_.push_back(t);
    if (kept_.size() > settings_.kept_times) kept_.pop_front();
  }
  void record_all_times() {
    for (std::size_t back = slots_.size(); back > 0; --back)
      if (step_ >= back) {
        slot& s = *slots_[(step_ - back) % slots_.size()];
        bool given_back;
        {
          const std::lock_guard guard(mutex_);
          given_back = s.state == slot_state::free;
        }
        if (given_back) record_times(s);
      }
  }

  // Runs on the thread that plans.
  void plan_batches() {
    executor_.enter_thread();
    for (std::size_t step = 0;; ++step) {
      slot& s = *slots_[step % slots_.size()];
      {
        std::unique_lock lock(mutex_);
        if (!wait(lock, [&] { return s.state == slot_state::free; })) return;
      }
      std::vector<task> tasks;
      std::exception_ptr failure;
      bool more = true;
      try {
        s.memory.wait_until_released();
        record_times(s);
        more = plan_batch(s, step, tasks);
      } catch (...) {
        failure = std::current_exception();
      }
      const bool ends = !more || failure;
      {
        const std::lock_guard guard(mutex_);
        if (ends) end_ = more ? step + 1 : step;
        if (failure) {
          s.failure = std::move(failure);
          s.state = slot_state::read;
        } else if (more) {
          s.state = tasks.empty() ? slot_state::read : slot_state::reading;  // a reader may have nothing to read
          s.left = tasks.size();
          tasks_.insert(tasks_.end(), tasks.begin(), tasks.end());
        }
      }
      changed_.notify_all();
      if (ends) return;
    }
  }

  // Returns false if there is no further batch.
  bool plan_batch(slot& s, std::size_t step, std::vector<task>& tasks) {
    s.times = {};
    s.times.step = step;
    s.times.plan_begin = now();
    auto request = plans_(step);
    if (!request) return false;
    s.batch.step = step;
    s.batch.cases = std::move(request->cases);
    s.batch.planned.emplace(std::move(request->plan));
    s.failed = std::numeric_limits<std::size_t>::max();
    const plan_type& plan = s.batch.plan();
    const std::string text = "feed: batch " + std::to_string(step);
    const site where{text};
    require(s.batch.cases.size() == plan.size(), where, "cases: expected one for each of the ", plan.size(),
            " samples of the plan, got ", s.batch.cases.size());
    s.boxes.clear();
    for (std::size_t i = 0; i < plan.size(); ++i) s.boxes.push_back(source_box(plan, i));
    s.input_bytes = s.output_bytes = 0;
    each_source([&](auto k) { lay_out(k, s, where); });
    each_source([&](auto k) { make_views(k, s, nullptr, nullptr); });
    s.workspace_bytes = with_sources([&](auto... k) { return workspace_bytes(plan, bound(k, s)...); });
    if (!reserve(s, where)) return false;
    each_source([&](auto k) { make_views(k, s, s.memory.inputs(), s.memory.others()); });
    for (std::size_t i = 0; i < s.boxes.size(); ++i) each_source([&](auto k) { list_tasks(k, s, i, tasks); });
    s.times.plan_end = now();
    s.times.read_begin = std::numeric_limits<double>::infinity();
    return true;
  }

  // Checks the cases of a source, and finds where their boxes and outputs lie in the memory of the batch.
  template <std::size_t K>
  void lay_out(source_number<K>, slot& s, const site& where) {
    const auto& reader = *std::get<K>(sources_).reader;
    const plan_type& plan = s.batch.plan();
    s.input_offsets[K].clear();
    s.output_offsets[K].clear();
    s.output_bytes = detail::aligned(s.output_bytes);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const std::size_t index = s.batch.cases[i];
      require(index < reader.size(), where, "cases: expected one of the ", reader.size(), " of source ", K, ", got ",
              index);
      const grid g = reader.grid_of(index);
      require(g.extents == plan.source_grid(i).extents, where, "case ", reader.name(index), ": extents: expected ",
              plan.source_grid(i).extents, " as the plan has them, got ", g.extents, " from source ", K,
              ". Plan with the grids of the reader, and resample label maps to their images");
      const auto channels = static_cast<std::size_t>(reader.channels(index));
      const std::size_t bytes =
          channels * static_cast<std::size_t>(s.boxes[i].voxels()) * sizeof(typename source<K>::element);
      s.input_offsets[K].push_back(s.input_bytes);
      s.input_bytes += detail::aligned(bytes);
      s.times.bytes += bytes;
      s.output_offsets[K].push_back(s.output_bytes);
      s.output_bytes += channels * static_cast<std::size_t>(plan.output_grid(i).voxels()) *
                        sizeof(typename source<K>::template output<plan_type>);
    }
  }

  // Makes the views of a batch in the memory that begins at `in` and `out`.
  template <std::size_t K>
  void make_views(source_number<K>, slot& s, std::byte* in, std::byte* out) {
    using T = typename source<K>::element;
    using Out = typename source<K>::template output<plan_type>;
    const auto& reader = *std::get<K>(sources_).reader;
    const plan_type& plan = s.batch.plan();
    auto& from = std::get<K>(s.in);
    auto& to = std::get<K>(s.batch.made);
    from.clear();
    to.clear();
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const std::int64_t channels = reader.channels(s.batch.cases[i]);
      const auto* data = in == nullptr ? nullptr : reinterpret_cast<const T*>(in + s.input_offsets[K][i]);
      from.push_back(partial_view<const T>(data, plan.source_grid(i), s.boxes[i], channels));
      auto* made = out == nullptr ? nullptr : reinterpret_cast<Out*>(out + s.output_offsets[K][i]);
      to.push_back(contiguous(made, plan.output_grid(i), channels));
    }
  }

  template <std::size_t K>
  static auto bound(source_number<K>, const slot& s) {
    if constexpr (source<K>::is_label)
      return labels(std::get<K>(s.in), std::get<K>(s.batch.made));
    else
      return image(std::get<K>(s.in), std::get<K>(s.batch.made));
  }

  // Makes room for a batch within most_bytes: waits until other batches are released, and frees the memory of unused
  // slots. Returns false if the feed ends.
  bool reserve(slot& s, const site& where) {
    const std::size_t others = detail::aligned(s.output_bytes) + detail::aligned(s.workspace_bytes);
    const std::size_t needed = detail::feed_memory<Executor>::bytes_of(s.input_bytes, others);
    require(needed <= settings_.most_bytes, where, "most_bytes: expected at least ", needed, " for ",
            s.batch.plan().size(), " samples, got ", settings_.most_bytes, ". Raise it, or make smaller batches");
    {
      std::unique_lock lock(mutex_);
      const auto bytes_in_use = [&](bool busy_alone) {
        std::size_t bytes = 0;
        for (const auto& each : slots_)
          if (each.get() != &s && (!busy_alone || each->state != slot_state::free)) bytes += each->memory.capacity();
        return bytes;
      };
      if (!wait(lock, [&] { return bytes_in_use(true) + needed <= settings_.most_bytes; })) return false;
      for (const auto& each : slots_)
        if (each.get() != &s && each->state == slot_state::free &&
            bytes_in_use(false) + std::max(needed, s.memory.capacity()) > settings_.most_bytes) {
          each->memory.wait_until_released();
          each->memory.drop();
        }
      // Otherwise the slot would grow to the larger of its old and its new parts, which may exceed the limit.
      if (bytes_in_use(false) + s.memory.capacity() + needed > settings_.most_bytes) s.memory.drop();
    }
    s.memory.reserve(s.input_bytes, others);
    std::size_t bytes = 0;
    for (const auto& each : slots_) bytes += each->memory.capacity();
    const std::lock_guard guard(recording_);
    statistics_.most_held = std::max(statistics_.most_held, bytes);
    return true;
  }

  template <std::size_t K>
  void list_tasks(source_number<K>, slot& s, std::size_t sample, std::vector<task>& tasks) {
    const std::size_t parts = detail::parts_of(*std::get<K>(sources_).reader, s.batch.cases[sample], s.boxes[sample]);
    for (std::size_t part = 0; part < parts; ++part) tasks.push_back({&s, tasks.size(), K, sample, part});
  }

  // Runs on the threads that read.
  void read_boxes() {
    executor_.enter_thread();
    while (true) {
      task t;
      {
        std::unique_lock lock(mutex_);
        if (!wait(lock, [&] { return !tasks_.empty(); })) return;
        t = tasks_.front();
        tasks_.pop_front();
      }
      slot& s = *t.of;
      const double begin = now();
      std::exception_ptr failure;
      each_source([&](auto k) {
        if (t.source == k) failure = read_box(k, t);
      });
      const double end = now();
      bool last;
      {
        const std::lock_guard guard(mutex_);
        s.times.reading += end - begin;
        s.times.read_begin = std::min(s.times.read_begin, begin);
        s.times.read_end = std::max(s.times.read_end, end);
        if (failure && t.number < s.failed) {
          s.failed = t.number;
          s.failure = std::move(failure);
        }
        last = --s.left == 0;
        if (last) s.state = slot_state::read;
      }
      if (last) changed_.notify_all();
    }
  }
  template <std::size_t K>
  std::exception_ptr read_box(source_number<K>, const task& t) {
    using T = typename source<K>::element;
    const slot& s = *t.of;
    const auto& reader = *std::get<K>(sources_).reader;
    const std::size_t index = s.batch.cases[t.sample];
    try {
      auto* to = reinterpret_cast<T*>(s.memory.staging() + s.input_offsets[K][t.sample]);
      detail::read_part_of(reader, index, s.boxes[t.sample], t.part, to);
      return {};
    } catch (const std::exception& problem) {
      std::string_view reason = problem.what();
      if (reason.starts_with("suture: ")) reason.remove_prefix(8);
      try {
        fail({"feed"}, "batch ", s.batch.step, ": case ", reader.name(index), ": ", reason);
      } catch (...) {
        return std::current_exception();
      }
    } catch (...) {
      return std::current_exception();
    }
  }

  // Runs on the thread that copies batches to a device, or runs them on the CPU, once they are read.
  void finish_batches() {
    executor_.enter_thread();
    for (std::size_t step = 0;; ++step) {
      slot& s = *slots_[step % slots_.size()];
      {
        std::unique_lock lock(mutex_);
        if (!wait(lock, [&] { return step >= end_ || s.state == slot_state::read; })) return;
        if (step >= end_) return;
      }
      std::exception_ptr failure = std::move(s.failure);
      if (!failure) try {
          s.memory.copy(s.input_bytes);
          if constexpr (detail::feed_executor<Executor>::runs_ahead) {
            s.times.run_begin = now();
            s.memory.run([&] { run_plan(s); });
            s.times.run_end = now();
          }
        } catch (...) {
          failure = std::current_exception();
        }
      {
        const std::lock_guard guard(mutex_);
        s.failure = std::move(failure);
        s.state = slot_state::ready;
      }
      changed_.notify_all();
    }
  }
  void run_plan(slot& s) {
    Executor on = executor_.executor();
    on.workspace = {s.memory.others() + detail::aligned(s.output_bytes), s.workspace_bytes};
    with_sources([&](auto... k) { run(on, s.batch.plan(), bound(k, s)...); });
  }

  detail::feed_executor<Executor> executor_;
  Plans plans_;
  feed_settings settings_;
  std::tuple<Sources...> sources_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<slot>> slots_;
  std::size_t step_ = 0;  // number of the batch that next() returns next
  slot* delivered_ = nullptr;

  std::mutex mutex_;  // guards the members up to stopped_, and the states of slots
  std::condition_variable changed_;
  std::deque<task> tasks_;
  std::size_t end_ = std::numeric_limits<std::size_t>::max();  // the number of batches, once it is known
  bool stopped_ = false;

  std::mutex recording_;
  feed_statistics statistics_;
  std::deque<feed_times> kept_;
  double last_released_ = 0;

  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace suture
