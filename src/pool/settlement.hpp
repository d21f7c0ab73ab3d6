/// What the store is told of an attempt that has ended, from the verdict on it. Pure.
#pragma once

#include "domain/driver.hpp"
#include "domain/verdict.hpp"
#include "store/store.hpp"

#include <memory>

namespace stint::pool {

struct AttemptKey {
  store::RunNumber run = 0;
  std::int64_t fence = 0;
};
[[nodiscard]] store::Settlement settlement_of(AttemptKey attempt, const domain::Verdict& verdict, const Usage& usage);
/// `before`: what earlier attempts left; null: nothing. Takes texts and denials out of the report.
[[nodiscard]] domain::RunMemo memo_of(std::unique_ptr<domain::RunMemo> before, const domain::Verdict& verdict,
                                      domain::WorkReport& report);

}  // namespace stint::pool
