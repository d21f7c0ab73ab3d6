/// What most files of the program share. Kept to headers that are not ours: a change of ours must not rebuild it.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <deque>
#include <expected>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#if __has_include(<fmt/format.h>)  // the library alone is built without it
#include <fmt/format.h>
#endif
