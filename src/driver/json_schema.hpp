/// Checks JSON values against a JSON Schema: the arguments of tool calls, their structured results, the answers that an
/// agent's file describes. Schemas come from agent files and MCP servers, values from models and servers; none of them
/// can make a check recurse, work or report without bound. Pure; a compiled schema may be shared between threads.
///
/// Honours the assertions of draft 2020-12, and of earlier drafts where they are the same: types, `properties`,
/// `items`, `$defs` with local `$ref`, combinations. Ignores `format` and unknown keywords. A keyword that it knows and
/// can't honour is listed by unsupported(): the schema then accepts more than it says.
#pragma once

#include "driver/text_pattern.hpp"
#include "stint/error.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::driver {

namespace json = boost::json;

/// One place where a value differs from its schema.
struct SchemaMismatch {
  std::string pointer;  ///< JSON pointer of the place in the value; empty: the value itself
  std::string message;  ///< what was expected, and what came

  friend bool operator==(const SchemaMismatch&, const SchemaMismatch&) = default;
};

class JsonSchema {
 public:
  static constexpr std::size_t kNodesMax = 5000;        ///< schemas within a schema
  static constexpr std::size_t kUnsupportedMax = 20;    ///< that are listed
  static constexpr int kDepthMax = 200;                 ///< of values, and of references without a step in the value
  static constexpr std::size_t kStepsMax = 1'000'000;   ///< of one check; about 50 ms
  static constexpr std::size_t kMismatchesMax = 10;     ///< that are listed
  static constexpr std::size_t kMessageBytesMax = 300;  ///< of one
  static constexpr std::size_t kPointerBytesMax = 200;

  /// Fails with `Errc::invalid` if it is not a schema, or is too large.
  [[nodiscard]] static Result<JsonSchema> compile(const json::value& schema);
  /// The same for its text.
  [[nodiscard]] static Result<JsonSchema> parse(std::string_view text);

  /// Where it says more than is checked: "/properties/to/pattern: lookaround … is not supported".
  [[nodiscard]] const std::vector<std::string>& unsupported() const noexcept { return unsupported_; }
  /// Empty: the value conforms.
  [[nodiscard]] std::vector<SchemaMismatch> check(const json::value& value) const;

 private:
  friend class SchemaCompiler;
  friend class SchemaCheck;
  using Index = std::uint32_t;
  using Number = long double;  // represents every 64-bit integer and every double
  static constexpr Index kNone = ~Index{0};
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

  struct Range {
    std::uint64_t least = 0, most = kUnbounded;
  };
  struct Numbers {
    std::optional<Number> least, most, above, below, multiple_of;
  };
  struct Object {
    Range size;
    std::vector<std::string> required;
    std::vector<std::pair<std::string, Index>> properties;  // sorted
    std::vector<std::pair<Index, Index>> patterns;          // of names → schema
    Index others = kNone, names = kNone;
    std::vector<std::pair<std::string, std::vector<std::string>>> required_with;
    std::vector<std::pair<std::string, Index>> with;
  };
  struct Array {
    Range size, contained{1, kUnbounded};
    std::vector<Index> first;
    Index rest = kNone, contains = kNone;
    bool unique = false;
  };
  struct Node {
    bool never = false;         // the schema `false`
    std::uint8_t types = 0xFF;  // bits of Type
    std::vector<json::value> values;
    bool has_values = false;
    Numbers numbers;
    Range length;
    Index pattern = kNone;
    Object object;
    Array array;
    std::vector<Index> all, any, one;
    Index no = kNone, condition = kNone, then = kNone, otherwise = kNone, reference = kNone;
  };

  std::vector<Node> nodes_;  // the first is the root
  std::vector<TextPattern> patterns_;
  std::vector<std::string> unsupported_;
};

/// The mismatches as a text from which a model can correct its call, one a line.
[[nodiscard]] std::string describe(std::span<const SchemaMismatch> mismatches);

}  // namespace stint::driver
