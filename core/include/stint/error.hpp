/// Expected failures as values: `Result<T>` is a value or an `Error`.
///
/// An error says what failed (`code`), whether it may be tried again (`retry`), a sentence for a person (`what`) and,
/// if there is one, the error beneath it (`cause`). Small to move: one word besides the code, text only where there is
/// any. Cancellation is not an error on its way up; it becomes `Errc::cancelled` only where somebody asks how work
/// ended.
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
  cancelled,    ///< somebody stopped the work
  timed_out,    ///< a deadline passed
  closed,       ///< the thing is shut, and will not open again
  invalid,      ///< the request can never be met
  full,         ///< no room now; later there may be
  exhausted,    ///< a budget has nothing left
  unavailable,  ///< the other side can't be reached or is overloaded
  conflict,     ///< somebody else was first
  denied,       ///< not allowed
  failed,       ///< the work itself failed
};

/// Whether the failed operation may be repeated, as far as who reports it can tell.
enum class Retry : std::uint8_t {
  never,    ///< repeating can't help, or must not happen
  safe,     ///< it did not take place, or may take place twice without harm
  unknown,  ///< it may have taken place: repeat only what is idempotent
};

[[nodiscard]] std::string_view to_string(Errc code) noexcept;
[[nodiscard]] std::string_view to_string(Retry retry) noexcept;

/// trivial_abi: returned in registers, so that a frame that may get one needs no place for it.
class STINT_TRIVIAL_ABI Error {
 public:
  using Duration = std::chrono::steady_clock::duration;

  Error(Errc code) noexcept : code_(code) {}  // NOLINT: an Errc is an Error without a story
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
  [[nodiscard]] std::string_view what() const noexcept;  ///< the code's name if nobody wrote a sentence
  [[nodiscard]] const Error* cause() const noexcept;
  /// What the other side asked for, counted from the moment the error was made.
  [[nodiscard]] std::optional<Duration> retry_after() const noexcept;

  Error&& because(Error cause) &&;
  Error&& after(Duration retry_after) &&;
  /// "what: cause: its cause".
  [[nodiscard]] std::string describe() const;

  friend bool operator==(const Error& error, Errc code) noexcept { return error.code_ == code; }

 private:
  struct Details;
  static void destroy(Details* details) noexcept;  // out of line: a Result must be small to destroy
  Details& details();

  Errc code_;
  Retry retry_ = Retry::never;
  Details* details_ = nullptr;  // owned; a raw pointer, so that no Result needs a place in a frame for its deleter
};

/// `std::expected<T, Error>` that may not be dropped: a discarded `Result`, returned or awaited, is a compiler warning.
/// Say `(void)` and the reason where a failure really does not matter.
template <class T = void>
class [[nodiscard]] Result : public std::expected<T, Error> {
  using Base = std::expected<T, Error>;

 public:
  using Base::Base;
  using Base::operator=;
  Result() = default;
  Result(const Base& other) : Base(other) {}        // NOLINT: what `transform` and its like give
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
/// The same for a `Result<>`, whose value is nothing.
#define STINT_CHECK(...) STINT_CHECK_AS(STINT_CONCAT(stint_try_, __LINE__), return, __VA_ARGS__)
#define STINT_CO_CHECK(...) STINT_CHECK_AS(STINT_CONCAT(stint_try_, __LINE__), co_return, __VA_ARGS__)
