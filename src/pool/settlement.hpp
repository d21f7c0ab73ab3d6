/// Makes the settlement and the memo of an ended attempt from its verdict and report. Pure.
#pragma once

#include "domain/driver.hpp"
#include "domain/verdict.hpp"
#include "store/store.hpp"

#include <memory>

namespace stint::pool {

[[nodiscard]] store::Settlement settlement_of(store::AttemptKey attempt, const domain::Verdict& verdict,
                                              const Usage& usage);
/// `settlement`: of the verdict, with its final delays.
[[nodiscard]] domain::VerdictRecord record_of(const domain::Verdict& verdict, const store::Settlement& settlement,
                                              std::uint32_t attempt, std::uint32_t attempts_max);
/// `before`: the memo of earlier attempts; null: none. Moves texts and denials out of the report.
[[nodiscard]] domain::RunMemo memo_of(std::unique_ptr<domain::RunMemo> before, const domain::Verdict& verdict,
                                      domain::WorkReport& report);

}  // namespace stint::pool
