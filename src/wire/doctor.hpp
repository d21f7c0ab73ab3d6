/// The findings of `stint doctor` as JSON: `{"schema":1,"status":…,"checks":[…]}`, one object on one line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stint::wire {

enum class CheckStatus : std::uint8_t { ok, warn, fail };  ///< in order: the worst of several is the largest
[[nodiscard]] std::string_view to_string(CheckStatus status) noexcept;

/// One check. Ids are stable and unique within an answer: scripts depend on them.
struct Check {
  std::string id;        ///< "limits.filesystem"
  std::string category;  ///< "limits"
  CheckStatus status = CheckStatus::ok;
  std::string summary;
  std::string remedy;  ///< the next step; empty if none is needed
};

inline constexpr int kDoctorSchema = 1;  ///< increases when a name changes its meaning or is removed

[[nodiscard]] CheckStatus worst(std::span<const Check> checks) noexcept;
[[nodiscard]] std::string doctor_to_json(std::span<const Check> checks);

}  // namespace stint::wire
