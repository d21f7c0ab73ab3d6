/// What the value of an option means; what is wrong with it is said under the option's name.
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

/// A moment from now that is still to come.
template <class Value>
[[nodiscard]] Result<Value> ahead(const std::string& option, Result<Value> read) {
  if (read && *read <= Value::zero()) return fail(Errc::invalid, option + ": has to be longer than no time");
  return of_option(option, std::move(read));
}

}  // namespace stint::cli
