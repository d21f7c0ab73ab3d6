/// Shared by the two halves of json_schema.hpp: the types of JSON Schema as bits.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stint::driver {

/// In the order of their bits. An integer is a number, too.
inline constexpr std::array<std::string_view, 7> kSchemaTypes{"null",   "boolean", "object", "array",
                                                              "number", "string",  "integer"};
enum SchemaType : std::uint8_t {
  kNull = 1,
  kBoolean = 2,
  kObject = 4,
  kArray = 8,
  kNumber = 16,
  kString = 32,
  kInteger = 64,
};

}  // namespace stint::driver
