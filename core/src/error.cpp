#include "stint/error.hpp"

namespace stint {

struct Error::Details {
  std::string what;
  std::optional<Duration> retry_after;
  std::unique_ptr<Error> cause;
};

void Error::destroy(Details* details) noexcept { delete details; }

std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::cancelled: return "cancelled";
    case Errc::timed_out: return "timed out";
    case Errc::closed: return "closed";
    case Errc::invalid: return "invalid";
    case Errc::full: return "full";
    case Errc::exhausted: return "exhausted";
    case Errc::unavailable: return "unavailable";
    case Errc::conflict: return "conflict";
    case Errc::denied: return "denied";
    case Errc::failed: return "failed";
  }
  return "unknown error";
}

std::string_view to_string(Retry retry) noexcept {
  switch (retry) {
    case Retry::never: return "never";
    case Retry::safe: return "safe";
    case Retry::unknown: return "unknown";
  }
  return "unknown";
}

Error::Error(Errc code, Retry retry, std::string what) : code_(code), retry_(retry) {
  if (!what.empty()) details().what = std::move(what);
}

Error::Error(const Error& other) : code_(other.code_), retry_(other.retry_) {
  if (other.details_ == nullptr) return;
  details().what = other.details_->what;
  details().retry_after = other.details_->retry_after;
  if (other.details_->cause) details().cause = std::make_unique<Error>(*other.details_->cause);
}

Error::Details& Error::details() {
  if (details_ == nullptr) details_ = new Details();
  return *details_;
}

std::string_view Error::what() const noexcept {
  return details_ != nullptr && !details_->what.empty() ? std::string_view(details_->what) : to_string(code_);
}

const Error* Error::cause() const noexcept { return details_ != nullptr ? details_->cause.get() : nullptr; }

std::optional<Error::Duration> Error::retry_after() const noexcept {
  return details_ != nullptr ? details_->retry_after : std::nullopt;
}

Error&& Error::because(Error cause) && {
  details().cause = std::make_unique<Error>(std::move(cause));
  return std::move(*this);
}

Error&& Error::after(Duration retry_after) && {
  details().retry_after = retry_after;
  return std::move(*this);
}

std::string Error::describe() const {
  std::string text;
  for (const Error* error = this; error != nullptr; error = error->cause()) {
    if (!text.empty()) text += ": ";
    text += error->what();
  }
  return text;
}

}  // namespace stint
