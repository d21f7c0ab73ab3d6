/// The parts of each protocol, for protocol.cpp to choose from, and helpers that their readers share.
#pragma once

#include "provider/protocol.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace stint::provider {

namespace json = boost::json;

/// "" if there is no such string.
[[nodiscard]] std::string text_at(const json::object& object, std::string_view key);
[[nodiscard]] bool bool_at(const json::object& object, std::string_view key, bool otherwise);
[[nodiscard]] const json::array* array_at(const json::object& object, std::string_view key);
[[nodiscard]] const json::object* object_at(const json::object& object, std::string_view key);
/// Reads the bound of the answer's length, if the request has one. `Errc::invalid` if it is not a whole number from 1.
[[nodiscard]] Result<> read_output_max(const json::object& object, std::string_view key, Ask& ask);

/// Finds the last user message, and counts the answers since. Text that a CLI adds for the model alone (reminders,
/// the environment) does not count as a user message.
class Conversation {
 public:
  void user_text(std::string_view text);
  void assistant() { ++turn_; }
  /// Ends a message: the next user text begins a new prompt.
  void next_message() { open_ = false; }
  void finish(Ask& ask) &&;

 private:
  std::string prompt_;
  std::string tagged_;  // the last text that begins with a tag
  std::uint32_t turn_ = 0;
  bool open_ = false;
};

/// The usual message for a status.
[[nodiscard]] std::string message_of(const Failure& failure);
[[nodiscard]] std::string write(const json::value& value);

namespace messages {
Result<> read(const json::object& body, Ask& ask);
std::unique_ptr<Encoder> encoder(const Ask& ask, std::uint64_t serial);
json::value error(const Failure& failure, std::uint64_t serial);
}  // namespace messages
namespace chat {
Result<> read(const json::object& body, Ask& ask);
std::unique_ptr<Encoder> encoder(const Ask& ask, std::uint64_t serial);
json::value error(const Failure& failure);
}  // namespace chat
namespace responses {
Result<> read(const json::object& body, Ask& ask);
std::unique_ptr<Encoder> encoder(const Ask& ask, std::uint64_t serial);
}  // namespace responses
namespace gemini {
Result<> read(const json::object& body, std::string_view target, Ask& ask);
std::unique_ptr<Encoder> encoder(const Ask& ask, std::uint64_t serial);
json::value error(const Failure& failure);
}  // namespace gemini

}  // namespace stint::provider
