/// What files that include Asio share. Kept to headers that are not ours: a change of ours must not rebuild it.
#pragma once

#include "pch_std.hpp"

#include <boost/asio.hpp>
