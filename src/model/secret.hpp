/// A credential. It can't be printed, formatted or compared by accident: only `reveal` gives the text, to the code that
/// writes the header of a request.
#pragma once

#include <string>
#include <utility>

namespace stint::model {

class Secret {
 public:
  Secret() = default;  ///< empty: none is sent
  explicit Secret(std::string text) noexcept : text_(std::move(text)) {}

  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
  [[nodiscard]] const std::string& reveal() const noexcept { return text_; }

 private:
  std::string text_;
};

}  // namespace stint::model
