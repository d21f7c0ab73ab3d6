/// What test files share. Kept to headers that are not ours: a change of ours must not rebuild it.
#pragma once

#include <boost/asio.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>
