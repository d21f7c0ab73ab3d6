/// The table of the API: which method and path leads to which handler, and what a request may carry there. Internal to
/// this folder.
#pragma once

#include "http/api_call.hpp"
#include "wire/fleet.hpp"

#include <array>

namespace stint::http {

inline constexpr std::string_view kAnyParameter = "*";

/// What of it a run may ask, which has a token of its own.
enum class ForRuns : std::uint8_t {
  never,
  always,
  below,   // if the run in the path is itself or below it
  strict,  // if the run in the path is below it
};

struct Api::Route {
  static constexpr std::size_t kPartsMax = 4;
  enum class Body : std::uint8_t { none, members };  // none: empty, or an object without members

  Route(std::string_view of_method, std::string_view of_path, Task<Response> (Api::*by)(Call),
        ForRuns may = ForRuns::never, Body body = Body::none, std::string_view names = {})
      : method(of_method),
        path(of_path),
        handler(by),
        for_runs(may),
        has_members(body == Body::members),
        parameters(names) {
    for (std::size_t begin = 1; begin < path.size(); ++count) {
      STINT_ASSERT(count < kPartsMax);
      const std::size_t end = std::min(path.find('/', begin), path.size());
      parts[count] = path.substr(begin, end - begin);
      if (parts[count].starts_with('{')) parts[count] = {};
      begin = end + 1;
    }
  }
  /// Whether the path, of as many parts, is this one; `id` gets what stands for `{…}`.
  bool matches(const std::vector<std::string_view>& segments, std::string_view& id) const noexcept {
    for (std::size_t at = 0; at < count; ++at) {
      if (parts[at].empty()) {
        id = segments[at];
        if (id.empty()) return false;
      } else if (parts[at] != segments[at]) {
        return false;
      }
    }
    return true;
  }
  /// Fails if the request says something that nothing would read: it may be misspelt.
  Result<> check_known(const Request& request) const {
    for (const net::Field& field : request.parts.query) {
      const bool known = parameters.contains(fmt::format(" {} ", field.name)) && !field.name.contains(' ');
      if (!known && parameters != kAnyParameter) {
        return fail(Errc::invalid, fmt::format("there is no parameter '{}'; {}{}", shown(field.name),
                                               parameters.empty() ? "none is known here" : "there are", parameters));
      }
    }
    return has_members ? Result<>() : wire::read_nothing(request.body);
  }

  std::string_view method, path;  // {id} stands for one segment
  Task<Response> (Api::*handler)(Call);
  ForRuns for_runs;
  bool has_members;             // of its body, which its handler reads
  std::string_view parameters;  // of the query, each between spaces; kAnyParameter: a monitor may add its own
  std::array<std::string_view, kPartsMax> parts{};  // of the path; empty: any segment
  std::size_t count = 0;
};

/// Where a request goes.
struct Api::Found {
  const Route* route = nullptr;  // none: nothing is there, or `allowed` says how it can be asked
  std::string_view id{};
  std::string allowed{};
};

}  // namespace stint::http
