/// Headers that files with Asio share. Third-party headers only: a change of ours must not rebuild it.
#pragma once

#include "pch_std.hpp"

#include <boost/asio.hpp>
