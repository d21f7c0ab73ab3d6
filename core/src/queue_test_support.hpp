/// Producers and consumers of a queue of numbers that log what happened to them. Shared by the queue's tests.
#pragma once

#include "stint/queue.hpp"
#include "test_support.hpp"

#include <string>
#include <vector>

namespace stint {

using Ints = std::vector<int>;

inline Task<> pushes(Queue<int>& queue, int item, Log& log) {
  const auto pushed = co_await queue.push(item);
  log.push_back("push " + std::to_string(item) + (pushed ? "" : " " + std::string(to_string(pushed.error().code()))));
}
inline Task<> pops(Queue<int>& queue, Log& log, std::string caller = "pop") {
  const auto item = co_await queue.pop();
  log.push_back(caller + " " + (item ? std::to_string(*item) : std::string(to_string(item.error().code()))));
}
inline Ints drain(Queue<int>& queue) {
  Ints items;
  while (auto item = queue.try_pop()) items.push_back(*item);
  return items;
}

}  // namespace stint
