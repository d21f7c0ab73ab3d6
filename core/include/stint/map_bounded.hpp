/// `co_await map_bounded(items, max, fn)`: runs `fn(item)`, a task, for every item, at most `max` at a time; results
/// are in the order of the items. The first failure stops the rest and is returned. `items` is any range; it is read
/// when `map_bounded` is called, and a container that is moved in is not copied.
#pragma once

#include "stint/scope.hpp"

#include <algorithm>
#include <optional>
#include <ranges>
#include <vector>

namespace stint {

namespace detail {

template <class T>
struct MapValue {
  using type = T;
};
template <class T>
struct MapValue<Result<T>> {
  using type = T;
};

}  // namespace detail

namespace detail {

template <class Item, class Fn>
auto map_items(std::vector<Item> items, std::size_t max, Fn fn) -> Task<
    Result<std::vector<Regular<typename MapValue<typename std::invoke_result_t<Fn&, Item>::value_type>::type>>>> {
  using Given = typename std::invoke_result_t<Fn&, Item>::value_type;
  using Value = Regular<typename MapValue<Given>::type>;

  if (max == 0) co_return fail(Errc::invalid, "map_bounded: max must be at least 1");
  std::vector<std::optional<Value>> results(items.size());
  std::size_t next = 0;
  // Each lane takes the next item when it has finished one, so there are never more frames than lanes.
  const auto lane = [&]() -> Task<Result<>> {
    while (next < items.size()) {
      const std::size_t at = next++;
      if constexpr (std::is_same_v<Given, Result<void>>) {
        STINT_CO_CHECK(co_await fn(std::move(items[at])));
        results[at].emplace();
      } else if constexpr (IsResult<Given>::value) {
        STINT_CO_TRY(results[at], co_await fn(std::move(items[at])));
      } else if constexpr (std::is_void_v<Given>) {
        co_await fn(std::move(items[at]));
        results[at].emplace();
      } else {
        results[at].emplace(co_await fn(std::move(items[at])));
      }
    }
    co_return Result<>();
  };
  const auto open = [&](Scope& lanes) -> Task<> {
    for (std::size_t i = 0; i < std::min(max, items.size()); ++i) lanes.spawn(lane());
    co_return;
  };
  STINT_CO_CHECK(co_await with_scope(std::ref(open)));
  std::vector<Value> values;
  values.reserve(results.size());
  for (auto& result : results) values.push_back(std::move(*result));
  co_return values;
}

}  // namespace detail

template <std::ranges::input_range Items, class Fn>
[[nodiscard]] auto map_bounded(Items&& items, std::size_t max, Fn fn) {
  using Item = std::ranges::range_value_t<Items>;
  if constexpr (std::is_constructible_v<std::vector<Item>, Items&&>) {
    return detail::map_items(std::vector<Item>(std::forward<Items>(items)), max, std::move(fn));
  } else {
    std::vector<Item> copies;
    if constexpr (std::ranges::sized_range<Items>) copies.reserve(std::ranges::size(items));
    for (auto&& item : items) copies.push_back(std::forward<decltype(item)>(item));
    return detail::map_items(std::move(copies), max, std::move(fn));
  }
}

}  // namespace stint
