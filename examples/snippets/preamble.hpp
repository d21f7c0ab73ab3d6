/// The lines that the pieces of code of a page need before them, as the page shows them.
#pragma once

// [library]
#include "stint/adaptive.hpp"
#include "stint/asio.hpp"
#include "stint/budget.hpp"
#include "stint/limit_set.hpp"
#include "stint/mutex.hpp"
#include "stint/object_pool.hpp"
#include "stint/offload.hpp"
#include "stint/queue.hpp"
#include "stint/rate.hpp"
#include "stint/reactor_thread.hpp"
#include "stint/retry.hpp"
#include "stint/run_on.hpp"
#include "stint/testing.hpp"
#include "stint/worker_pool.hpp"

#include <boost/asio/bind_executor.hpp>
#include <gtest/gtest.h>

#include <fstream>
#include <ranges>

using namespace stint;
using namespace std::chrono_literals;
// [/library]

// [learn]
#include "stint/mutex.hpp"
#include "stint/queue.hpp"
#include "stint/rate.hpp"
#include "stint/scope.hpp"
#include "stint/semaphore.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

#include <atomic>

using namespace stint;
using namespace std::chrono_literals;
using Log = std::vector<std::string>;
// [/learn]
