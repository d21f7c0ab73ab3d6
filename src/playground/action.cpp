#include "playground/action.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stint::playground {
namespace {

bool is_name(std::string_view text) {
  const auto may = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= kNameBytesMax && std::ranges::all_of(text, may);
}

Result<> check_name(std::string_view what, std::string_view name) {
  if (is_name(name)) return {};
  return fail(Errc::invalid, fmt::format("'{}' must be 1 to {} letters, digits, '-' or '_'", what, kNameBytesMax));
}

Result<> check_number(std::string_view what, std::uint32_t value, std::uint32_t least) {
  if (value >= least && value <= kUnitsMax) return {};
  return fail(Errc::invalid, fmt::format("'{}' must be a whole number from {} to {}", what, least, kUnitsMax));
}

Result<> check_time(std::string_view what, Duration time) {
  if (time >= Duration::zero() && time <= kTimeMax) return {};
  return fail(Errc::invalid, fmt::format("'{}' must be from 0 to {} ms", what,
                                         std::chrono::duration_cast<std::chrono::milliseconds>(kTimeMax).count()));
}

/// Whether the verb is defined for the kind.
bool applies(Verb verb, Kind kind) {
  switch (verb) {
    case Verb::return_units:
    case Verb::resize:
    case Verb::bypass: return kind == Kind::semaphore;
    case Verb::discard: return kind == Kind::pool;
    case Verb::close: return kind != Kind::server;
    default: return true;
  }
}

bool has_resource(Verb verb) {
  return verb != Verb::work && verb != Verb::stream && verb != Verb::cancel && verb != Verb::advance;
}

bool has_task(Verb verb) {
  return verb != Verb::resize && verb != Verb::close && verb != Verb::bypass && verb != Verb::advance;
}

Result<> check_resource(const Setup& setup, const Action& action) {
  const ResourceSpec* const resource = find(setup, action.resource);
  if (resource == nullptr) {
    STINT_CHECK(check_name("resource", action.resource));
    return fail(Errc::invalid, fmt::format("there is no resource '{}' in this sandbox", action.resource));
  }
  if (!applies(action.verb, resource->kind)) {
    return fail(Errc::invalid, fmt::format("'{}' is not possible for '{}': it is a {}", to_string(action.verb),
                                           resource->name, to_string(resource->kind)));
  }
  if (action.verb == Verb::acquire && resource->kind != Kind::semaphore && action.units != 1) {
    return fail(Errc::invalid, fmt::format("'weight' is 1 for a {}", to_string(resource->kind)));
  }
  return {};
}

}  // namespace

std::string_view to_string(Kind kind) noexcept {
  switch (kind) {
    case Kind::semaphore: return "semaphore";
    case Kind::mutex: return "mutex";
    case Kind::pool: return "pool";
    case Kind::server: return "server";
  }
  std::unreachable();
}

std::string_view to_string(Verb verb) noexcept {
  switch (verb) {
    case Verb::acquire: return "acquire";
    case Verb::release: return "release";
    case Verb::return_units: return "return_units";
    case Verb::discard: return "discard";
    case Verb::work: return "work";
    case Verb::stream: return "stream";
    case Verb::cancel: return "cancel";
    case Verb::resize: return "resize";
    case Verb::close: return "close";
    case Verb::bypass: return "bypass";
    case Verb::advance: return "advance";
  }
  std::unreachable();
}

std::string_view to_string(Order order) noexcept { return order == Order::fifo ? "fifo" : "seeded"; }

const ResourceSpec* find(const Setup& setup, std::string_view name) noexcept {
  const auto found = std::ranges::find(setup.resources, name, &ResourceSpec::name);
  return found == setup.resources.end() ? nullptr : &*found;
}

Result<> check(const Setup& setup) {
  if (setup.resources.size() > kResourcesMax) {
    return fail(Errc::invalid, fmt::format("'resources' must have at most {} entries", kResourcesMax));
  }
  for (const ResourceSpec& resource : setup.resources) {
    STINT_CHECK(check_name("name", resource.name));
    if (find(setup, resource.name) != &resource) {
      return fail(Errc::invalid, fmt::format("two resources are named '{}'", resource.name));
    }
    STINT_CHECK(check_number("capacity", resource.capacity, resource.kind == Kind::semaphore ? 0 : 1));
    STINT_CHECK(check_number("bypass_max", resource.bypass_max, 0));
  }
  return {};
}

Result<> check(const Setup& setup, const Action& action) {
  if (has_task(action.verb)) STINT_CHECK(check_name("task", action.task));
  if (!action.of.empty()) STINT_CHECK(check_name("of", action.of));
  if (has_resource(action.verb)) STINT_CHECK(check_resource(setup, action));
  STINT_CHECK(check_number(action.verb == Verb::acquire ? "weight" : "units", action.units, 1));
  STINT_CHECK(check_number("capacity", action.capacity, 0));
  if (action.priority < Semaphore::kPriorityMin || action.priority > Semaphore::kPriorityMax) {
    return fail(Errc::invalid, fmt::format("'priority' must be a whole number from {} to {}", Semaphore::kPriorityMin,
                                           Semaphore::kPriorityMax));
  }
  STINT_CHECK(check_time("ms", action.time));
  if (action.timeout) STINT_CHECK(check_time("timeout_ms", *action.timeout));
  return {};
}

}  // namespace stint::playground
