/// The route table of the API: maps a method and path to a handler, with what a request may carry there. Internal to
/// this folder.
#pragma once

#include "http/api_call.hpp"
#include "wire/fleet.hpp"

#include <array>

namespace stint::http {

inline constexpr std::string_view kAnyParameter = "*";

/// Whether the token of a run permits a route.
enum class ForRuns : std::uint8_t {
  never,
  always,
  below,   // for the run itself and its descendants
  strict,  // for descendants of the run only
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
  /// Matches a path of that many parts; `id` gets the segment at `{…}`.
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
  /// Fails on a parameter that no handler reads: it may be misspelt.
  Result<> check_known(const Request& request) const {
    for (const net::Field& field : request.parts.query) {
      const bool known = parameters.contains(fmt::format(" {} ", field.name)) && !field.name.contains(' ');
      if (!known && parameters != kAnyParameter) {
        return fail(Errc::invalid, fmt::format("there is no parameter '{}' here; {}{}", shown(field.name),
                                               parameters.empty() ? "this path takes none" : "allowed:", parameters));
      }
    }
    return has_members ? Result<>() : wire::read_nothing(request.body);
  }

  std::string_view method, path;  // {id} stands for one segment
  Task<Response> (Api::*handler)(Call);
  ForRuns for_runs;
  bool has_members;             // of its body, which the handler reads
  std::string_view parameters;  // allowed in the query, each between spaces; kAnyParameter: a monitor may add its own
  std::array<std::string_view, kPartsMax> parts{};  // of the path; empty: any segment
  std::size_t count = 0;
};

/// The route of a request.
struct Api::Found {
  const Route* route = nullptr;  // nullptr: no such path, or `allowed` lists its methods
  std::string_view id{};
  std::string allowed{};
};

}  // namespace stint::http
