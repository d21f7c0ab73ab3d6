#include "store/errors.hpp"

#include "store/batch.hpp"
#include "store/store.hpp"

namespace stint::store {

Error no_such_run(const std::string& id) { return {Errc::invalid, "there is no run '" + id + "'"}; }
Error no_such_agent(const std::string& name) { return {Errc::invalid, "there is no agent '" + name + "'"}; }
Error session_of_ancestor(const std::string& session, const std::string& above) {
  return {Errc::invalid, "session '" + session + "' is held by run '" + above +
                             "', which is above this one: each would wait for the other. Use another session"};
}

Error message_missing(std::uint32_t at) {
  return {Errc::invalid,
          "message " + std::to_string(at) + " of the conversation can't be stored: the one before it is missing"};
}
Error conversation_too_long() {
  return {Errc::exhausted, "the conversation is longer than " + std::to_string(kConversationMax >> 20U) + " MiB or " +
                               std::to_string(kMessagesMax) + " messages"};
}
Error too_many_batches() {
  return {Errc::full, Retry::safe,
          "there are already " + std::to_string(kBatchesOpenMax) + " batches that have not ended"};
}

Error no_such_cursor(const std::string& text) {
  return {Errc::invalid, "'" + text + "' is not a cursor of this feed. Start without a cursor"};
}

Error cursor_ahead(const std::string& text) {
  return {Errc::invalid, "cursor '" + text + "' is after the newest event of this feed. Start without a cursor"};
}

}  // namespace stint::store
