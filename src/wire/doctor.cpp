#include "wire/doctor.hpp"

#include "wire/json.hpp"

#include <boost/json.hpp>

#include <algorithm>

namespace stint::wire {

namespace json = boost::json;

std::string_view to_string(CheckStatus status) noexcept {
  switch (status) {
    case CheckStatus::ok: return "ok";
    case CheckStatus::warn: return "warn";
    case CheckStatus::fail: return "fail";
  }
  return "fail";
}

CheckStatus worst(std::span<const Check> checks) noexcept {
  CheckStatus status = CheckStatus::ok;
  for (const Check& check : checks) status = std::max(status, check.status);
  return status;
}

std::string doctor_to_json(std::span<const Check> checks) {
  json::array list;
  for (const Check& check : checks) {
    list.push_back({{"id", valid_utf8(check.id)},
                    {"category", valid_utf8(check.category)},
                    {"status", to_string(check.status)},
                    {"summary", valid_utf8(check.summary)},
                    {"remedy", valid_utf8(check.remedy)}});
  }
  return json::serialize(
      json::object{{"schema", kDoctorSchema}, {"status", to_string(worst(checks))}, {"checks", std::move(list)}});
}

}  // namespace stint::wire
