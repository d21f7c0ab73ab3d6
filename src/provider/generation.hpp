/// One answer in progress: gives the stream's bytes token by token and tells when each is due. The server's coroutine
/// waits and writes; all decisions are here. Pure: the pace is counted from a start that the caller keeps.
#pragma once

#include "provider/protocol.hpp"

namespace stint::provider {

class Generation {
 public:
  Generation(const Ask& ask, Reply reply, std::uint64_t serial);

  [[nodiscard]] const Reply& reply() const noexcept { return reply_; }
  /// When token number `made()` is due, counted from the start of the generation.
  [[nodiscard]] Duration due() const noexcept;
  [[nodiscard]] bool done() const noexcept { return made_ >= total_; }
  [[nodiscard]] std::uint32_t made() const noexcept { return made_; }
  [[nodiscard]] std::uint32_t total() const noexcept { return total_; }
  /// Whether the reply's stream fault is due now, before the next token. True once.
  [[nodiscard]] bool strikes_now() noexcept;

  [[nodiscard]] std::string begin() { return encoder_->begin(tokens()); }
  /// The bytes of the next token.
  [[nodiscard]] std::string next();
  /// Counts the next token without producing its bytes.
  void skip() noexcept { ++made_; }
  [[nodiscard]] std::string end();
  [[nodiscard]] std::string whole();
  [[nodiscard]] std::string error_event(const Failure& failure) { return encoder_->error(failure); }

 private:
  [[nodiscard]] Tokens tokens() const noexcept;

  const Reply reply_;
  std::vector<Block> blocks_;
  Finish finish_ = Finish::complete;
  const std::unique_ptr<Encoder> encoder_;
  const std::uint32_t input_tokens_;
  std::uint32_t total_ = 0;
  std::uint32_t made_ = 0;
  std::size_t block_ = 0;  // position of the next token
  std::size_t piece_ = 0;
  bool struck_ = false;
};

}  // namespace stint::provider
