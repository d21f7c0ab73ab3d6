#include "provider/generation.hpp"

#include <algorithm>

namespace stint::provider {

Generation::Generation(const Ask& ask, Reply reply, std::uint64_t serial)
    : reply_(std::move(reply)),
      blocks_(make_blocks(reply_, ask.prompt, serial)),
      encoder_(make_encoder(ask, serial)),
      input_tokens_(ask.input_tokens) {
  const std::uint32_t most = ask.output_max.value_or(UINT32_MAX);
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    const auto size = static_cast<std::uint32_t>(block->pieces.size());
    if (size > most - total_) {
      finish_ = Finish::cut;
      block->pieces.resize(most - total_);
      blocks_.erase(block->pieces.empty() ? block : block + 1, blocks_.end());
      total_ = most;
      break;
    }
    total_ += size;
  }
}

Duration Generation::due() const noexcept {
  if (reply_.rate <= 0) return Duration::zero();
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(made_ / reply_.rate));
}

bool Generation::strikes_now() noexcept {
  switch (reply_.fault) {
    case Fault::hang_stream:
    case Fault::half_stream:
    case Fault::cut:
    case Fault::reset_stream:
    case Fault::malformed:
    case Fault::error_event: break;
    default: return false;
  }
  // A text shorter than `after` must not skip the fault.
  if (struck_ || made_ < std::min(reply_.after, total_)) return false;
  struck_ = true;
  return true;
}

std::string Generation::next() {
  std::string out;
  while (block_ < blocks_.size() && blocks_[block_].pieces.empty()) {  // an empty text is still a block
    out += encoder_->open(block_, blocks_[block_]) + encoder_->close(block_, blocks_[block_]);
    ++block_;
  }
  if (block_ >= blocks_.size()) return out;
  const Block& block = blocks_[block_];
  if (piece_ == 0) out += encoder_->open(block_, block);
  out += encoder_->piece(block_, block, block.pieces[piece_]);
  ++made_;
  if (++piece_ == block.pieces.size()) {
    out += encoder_->close(block_, block);
    ++block_;
    piece_ = 0;
  }
  return out;
}

std::string Generation::end() {
  std::string out;
  for (; block_ < blocks_.size(); ++block_) {
    out += encoder_->open(block_, blocks_[block_]) + encoder_->close(block_, blocks_[block_]);
  }
  return out + encoder_->end(blocks_, tokens(), finish_);
}

std::string Generation::whole() { return encoder_->whole(blocks_, tokens(), finish_); }

Tokens Generation::tokens() const noexcept {
  Tokens tokens;
  tokens.cache_read = reply_.cache_read;
  tokens.cache_write = reply_.cache_write;
  tokens.fresh = input_tokens_;
  tokens.output = made_;
  return tokens;
}

}  // namespace stint::provider
