/// Lessons: each has a sandbox that plays by itself, a question to answer before it plays, and the C++ that does the
/// same. That C++ is compiled: a test runs it on a stage and expects the events of the sandbox.
#pragma once

#include "playground/sandbox.hpp"
#include "playground/shown_code.hpp"
#include "playground/stage.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace stint::playground {

struct Preset {
  std::string_view name{};
  std::string_view title{};
  std::array<std::string_view, 3> sentences;
  std::string_view question{};
  std::vector<std::string_view> choices{};
  std::size_t answer = 0;  ///< index into `choices`
  std::string_view why{};  ///< why that is the answer
  ShownCode code{};        ///< the C++, as it is compiled
  void (*run)(Stage& stage) = nullptr;
  Setup setup{};
  std::vector<Action> actions{};
};

[[nodiscard]] const std::vector<Preset>& presets();
/// Null: there is no such preset.
[[nodiscard]] const Preset* find_preset(std::string_view name);
/// A sandbox that has not begun.
[[nodiscard]] Sandbox open(const Preset& preset);

}  // namespace stint::playground
