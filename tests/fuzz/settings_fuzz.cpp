// Any bytes as a settings file: the values are usable, whatever problems are reported.
#include "agent/settings.hpp"
#include "stint/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

using namespace stint;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto loaded =
      agent::read_settings({{{agent::OriginKind::project, "stint.toml", text}}, {{"STINT_STORE", "memory"}}, {}});
  const agent::Settings& settings = loaded.settings;
  STINT_ASSERT(settings.store == "memory");
  STINT_ASSERT(domain::is_agent_name(settings.default_agent));
  STINT_ASSERT(settings.retention > Duration::zero() && settings.pool.drain > Duration::zero());
  for (const auto& [name, limit] : settings.limits) {
    STINT_ASSERT(domain::is_limit_name(name));
    STINT_ASSERT(!limit.capacity || *limit.capacity >= 1);
  }
  for (const agent::Setting& setting : settings.all) STINT_ASSERT(settings.find(setting.key()) != nullptr);
  return 0;
}
