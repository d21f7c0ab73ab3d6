// Any bytes as what an MCP server says, line by line, and the schemas of its tools: nothing that it says breaks a
// bound.
#include "driver/json_schema.hpp"
#include "driver/mcp_core.hpp"
#include "stint/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

using namespace stint;
using driver::McpSession;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  std::string_view text(reinterpret_cast<const char*>(data), size);
  McpSession session;
  (void)session.open();
  std::size_t called = 0;
  std::size_t answered = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto received = session.take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    STINT_ASSERT(received.replies.size() <= McpSession::kBatchMax * 2);
    answered += received.answers.size();
    if (session.phase() == McpSession::Phase::ready && session.call("a", {})) ++called;
  }
  STINT_ASSERT(answered <= called);
  STINT_ASSERT(session.tools().size() <= McpSession::kToolsMax && session.notes().size() <= McpSession::kNotesMax);
  STINT_ASSERT((session.phase() == McpSession::Phase::failed) == session.error().has_value());
  for (const driver::McpTool& tool : session.tools()) {
    const auto schema = driver::JsonSchema::compile(tool.input);
    if (!schema) continue;
    STINT_ASSERT(schema->unsupported().size() <= driver::JsonSchema::kUnsupportedMax);
    for (const driver::McpTool& other : session.tools()) {
      STINT_ASSERT(schema->check(other.input).size() <= driver::JsonSchema::kMismatchesMax + 1);
    }
  }
  return 0;
}
