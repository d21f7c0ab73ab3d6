#include "http/shared_answer.hpp"

#include <algorithm>

namespace stint::http {

/// One request makes the answer. If it is stopped before the end, the next one does.
class SharedAnswer::Making {
 public:
  explicit Making(SharedAnswer& answer) noexcept : answer_(answer) { answer_.making_ = true; }
  ~Making() {
    answer_.making_ = false;
    answer_.made_.notify();
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  SharedAnswer& answer_;
};

bool SharedAnswer::is_fresh() const { return parts_.elapsed() < std::max(next_at_, read_at_ + kFresh); }

Task<> SharedAnswer::make() {
  const Making making(*this);
  const Duration pause = next_at_ - parts_.elapsed();
  if (pause > Duration::zero()) co_await sleep_for(pause);
  const std::uint64_t covers = changes_;
  const Duration began = parts_.elapsed();
  Result<std::string> made = co_await parts_.make();
  const Duration took = parts_.elapsed() - began;
  last_ = made ? Result<Text>(std::make_shared<const std::string>(std::move(*made))) : Result<Text>(fail(made.error()));
  ++readings_;
  covered_ = covers;
  read_at_ = began;
  next_at_ = began + std::clamp<Duration>(took * kGapShare, kGapMin, kGapMax);
}

Task<Result<SharedAnswer::Text>> SharedAnswer::get() {
  const std::uint64_t needed = changes_, before = readings_;
  // An answer that came while the request waited is good however long its reading took.
  while (!last_ || covered_ < needed || (readings_ == before && !is_fresh())) {
    if (making_) {
      co_await made_.wait(made_.count());
    } else {
      co_await make();
    }
  }
  co_return *last_;
}

}  // namespace stint::http
