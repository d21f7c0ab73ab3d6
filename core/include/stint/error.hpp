/// Expected failures as values: `Result<T>` is a value or an `Error`.
///
/// An error states what failed (`code`), whether it may be retried (`retry`), a message for people (`what`) and,
/// optionally, the underlying error (`cause`). Cheap to move: one pointer besides the code, text only if there is any.
/// Cancellation does not propagate as an error; it becomes `Errc::cancelled` only where a caller asks for the outcome
/// of cancelled work.
#pragma once

#include "stint/detail/compiler.hpp"

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stint {

enum class Errc : std::uint8_t {
  cancelled,    ///< the work was cancelled
  timed_out,    ///< a deadline passed
  closed,       ///< permanently closed
  invalid,      ///< the request can never succeed
  full,         ///< no room now; may succeed later
  exhausted,    ///< a budget is used up
  unavailable,  ///< the upstream is unreachable or overloaded
  conflict,     ///< another party holds it or changed it first
  denied,       ///< not allowed
  failed,       ///< the work itself failed
};

/// Whether the failed operation may be repeated, as far as its reporter can tell.
enum class Retry : std::uint8_t {
  never,    ///< repeating can't help, or is unsafe
  safe,     ///< it was not executed, or may be executed twice
  unknown,  ///< it may have been executed: repeat only if idempotent
};

[[nodiscard]] std::string_view to_string(Errc code) noexcept;
[[nodiscard]] std::string_view to_string(Retry retry) noexcept;

/// trivial_abi: returned in registers, so that a coroutine frame needs no space for it.
class STINT_TRIVIAL_ABI Error {
 public:
  using Duration = std::chrono::steady_clock::duration;

  Error(Errc code) noexcept : code_(code) {}  // NOLINT: an Errc converts to an Error without a message
  Error(Errc code, std::string what) : Error(code, Retry::never, std::move(what)) {}
  Error(Errc code, Retry retry, std::string what = {});
  Error(const Error& other);
  Error(Error&& other) noexcept
      : code_(other.code_), retry_(other.retry_), details_(std::exchange(other.details_, nullptr)) {}
  Error& operator=(Error other) noexcept {
    code_ = other.code_;
    retry_ = other.retry_;
    std::swap(details_, other.details_);
    return *this;
  }
  ~Error() {
    if (details_ != nullptr) destroy(details_);
  }

  [[nodiscard]] Errc code() const noexcept { return code_; }
  [[nodiscard]] Retry retry() const noexcept { return retry_; }
  [[nodiscard]] std::string_view what() const noexcept;  ///< the code's name if there is no message
  [[nodiscard]] const Error* cause() const noexcept;
  /// The delay requested by the server, counted from the creation of the error.
  [[nodiscard]] std::optional<Duration> retry_after() const noexcept;

  Error&& because(Error cause) &&;
  Error&& after(Duration retry_after) &&;
  /// "what: cause: cause of the cause".
  [[nodiscard]] std::string describe() const;

  friend bool operator==(const Error& error, Errc code) noexcept { return error.code_ == code; }

 private:
  struct Details;
  static void destroy(Details* details) noexcept;  // out of line, to keep destroying a Result small
  Details& details();

  Errc code_;
  Retry retry_ = Retry::never;
  Details* details_ = nullptr;  // owned; a raw pointer, so that a Result stays trivial to pass in registers
};

/// `std::expected<T, Error>` that must not be discarded: a discarded `Result`, returned or awaited, is a compiler
/// warning. Where a failure really does not matter, write `(void)` and the reason.
template <class T = void>
class [[nodiscard]] Result : public std::expected<T, Error> {
  using Base = std::expected<T, Error>;

 public:
  using Base::Base;
  using Base::operator=;
  Result() = default;
  Result(const Base& other) : Base(other) {}        // NOLINT: the result of `transform` and similar functions
  Result(Base&& other) : Base(std::move(other)) {}  // NOLINT
};

[[nodiscard]] inline std::unexpected<Error> fail(Error error) { return std::unexpected<Error>(std::move(error)); }
[[nodiscard]] inline std::unexpected<Error> fail(Errc code, std::string what) {
  return std::unexpected<Error>(Error(code, std::move(what)));
}

}  // namespace stint

#define STINT_CONCAT_INNER(a, b) a##b
#define STINT_CONCAT(a, b) STINT_CONCAT_INNER(a, b)
#define STINT_TRY_AS(temporary, leave, declaration, ...)                               \
  auto temporary = (__VA_ARGS__);                                                      \
  if (!temporary) leave std::unexpected<::stint::Error>(std::move(temporary).error()); \
  declaration = *std::move(temporary)
#define STINT_CHECK_AS(temporary, leave, ...) \
  if (auto temporary = (__VA_ARGS__); !temporary) leave std::unexpected<::stint::Error>(std::move(temporary).error())

/// `STINT_TRY(auto x, f());` takes the value or returns the error. The CO_ forms are for coroutines.
#define STINT_TRY(declaration, ...) STINT_TRY_AS(STINT_CONCAT(stint_try_, __LINE__), return, declaration, __VA_ARGS__)
#define STINT_CO_TRY(declaration, ...) \
  STINT_TRY_AS(STINT_CONCAT(stint_try_, __LINE__), co_return, declaration, __VA_ARGS__)
/// The same for a `Result<>`, which has no value.
#define STINT_CHECK(...) STINT_CHECK_AS(STINT_CONCAT(stint_try_, __LINE__), return, __VA_ARGS__)
#define STINT_CO_CHECK(...) STINT_CHECK_AS(STINT_CONCAT(stint_try_, __LINE__), co_return, __VA_ARGS__)
