/// What files that include Asio share. Kept to headers that are not ours: a change of ours must not rebuild it.
#pragma once

#include <boost/asio.hpp>

#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>
