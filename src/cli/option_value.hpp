/// Parses option values; errors begin with the option's name.
#pragma once

#include "stint/error.hpp"

#include <string>
#include <utility>

namespace stint::cli {

template <class Value>
[[nodiscard]] Result<Value> of_option(const std::string& option, Result<Value> read) {
  if (read) return read;
  return fail(read.error().code(), option + ": " + std::string(read.error().what()));
}

/// A duration greater than zero.
template <class Value>
[[nodiscard]] Result<Value> ahead(const std::string& option, Result<Value> read) {
  if (read && *read <= Value::zero()) return fail(Errc::invalid, option + ": must be greater than zero");
  return of_option(option, std::move(read));
}

}  // namespace stint::cli
