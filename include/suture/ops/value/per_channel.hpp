// SPDX-License-Identifier: Apache-2.0
// Parameters drawn for each channel of an image.
#pragma once

#include <string_view>
#include <utility>

#include "../../base/fields.hpp"
#include "../../pipeline/pipeline.hpp"

namespace suture {

namespace detail {

// One functor for each channel, switched on or off.
template <class Operation, class Functor>
struct channel_functors {
  static constexpr int max_channels = most_channels;
  static constexpr std::string_view name = name_of<Operation>();

  switched<Functor> channel[max_channels];

  SUTURE_FN float operator()(float x, const voxel& at) const { return call(channel[at.channel], x, at); }

  // operator() for voxels side by side along x.
  template <int Count>
  SUTURE_INLINE void apply_row(float (&values)[Count], const voxel& first) const {
    const switched<Functor> own = channel[first.channel];
    if (!own.on) return;
    if constexpr (requires { own.functor.apply_row(values, first); }) {
      own.functor.apply_row(values, first);
    } else {
      voxel at = first;
      for (int l = 0; l < Count; ++l) {
        values[l] = call(own.functor, values[l], at);
        ++at.x;
        ++at.element;
      }
    }
  }
};

// Parameters that a random operation drew for each channel.
template <class Operation>
struct drawn_channels {
  using drawn = drawn_t<Operation>;
  using functor =
      decltype(prepared(std::declval<const drawn&>(), std::declval<const grid&>(), std::declval<const site&>()));
  static_assert(applies<functor, float>, "suture: per_channel takes random value operations of one channel");

  drawing<drawn> channel[most_channels];

  static constexpr auto fields = named("channels", &drawn_channels::channel);

  channel_functors<Operation, functor> prepare(const grid& g, const site& where) const {
    return prepare(g, where, std::make_index_sequence<most_channels>{});
  }

private:
  template <std::size_t... C>
  channel_functors<Operation, functor> prepare(const grid& g, const site& where, std::index_sequence<C...>) const {
    return {{{prepared(channel[C].parameters, g, where), channel[C].on ? 1u : 0u}...}};
  }
};

}  // namespace detail

// Draws of per_channel: `probability` is that of each channel on a sample where the operation fired; `synchronized`
// takes one set of parameters for all channels, so that only whether a channel is changed is drawn per channel.
struct channel_draws {
  float probability = 1;
  bool synchronized = false;

  static constexpr auto parameters =
      named("probability", &channel_draws::probability, "synchronized", &channel_draws::synchronized);
};

// A random operation that draws for each channel; made by per_channel.
template <class Operation>
struct per_channel_operation : Operation {
  channel_draws channels;

  void check(const site& where) const {
    if constexpr (checks_recipe<Operation>) Operation::check(where);
    require(channels.probability >= 0 && channels.probability <= 1, where, "probability of a channel ",
            channels.probability, " is not in [0, 1]");
  }

  // Takes eight times the slots of the operation, each after one that decides on the channel.
  detail::drawn_channels<Operation> draw(draws& random, const grid& g, const site& where) const {
    return draw(random, g, where, std::make_index_sequence<most_channels>{});
  }

private:
  template <std::size_t... C>
  detail::drawn_channels<Operation> draw(draws& random, const grid& g, const site& where,
                                         std::index_sequence<C...>) const {
    const auto one = [&](std::size_t) -> drawing<drawn_t<Operation>> {
      const bool on = random.bernoulli(channels.probability);
      if constexpr (draws_on_grid<Operation>)
        return {Operation::draw(random, g, where), on};
      else
        return {Operation::draw(random, where), on};
    };
    // Braces evaluate from the first channel to the last.
    detail::drawn_channels<Operation> result{{one(C)...}};
    for (auto& channel : result.channel)
      if (channels.synchronized) channel.parameters = result.channel[0].parameters;
    return result;
  }
};

// The random value operation with its own parameters in every channel, for images of up to 8 channels:
//   per_channel(random_gamma{.range = {.7f, 1.5f}, .probability = .3f}, {.probability = .5f})
// fires on 3 samples in 10 and there on each channel in 5 cases of 10. Always eight channels are drawn, so the number
// of channels shifts nothing. Errors: those of the operation, a probability outside [0, 1]; a run refuses more
// channels.
template <class Operation>
per_channel_operation<Operation> per_channel(const Operation& operation, const channel_draws& channels = {}) {
  static_assert(random_operation<Operation> && role_of<Operation>() == role::value && !has_evaluation<Operation>,
                "suture: per_channel takes a random value operation");
  return {{operation}, channels};
}

}  // namespace suture
