#include "cli/exit_status.hpp"

namespace stint::cli {

int exit_status(const store::Run& run) noexcept {
  switch (run.state) {
    case domain::RunState::succeeded: return kExitDone;
    case domain::RunState::failed: return kExitFailed;
    case domain::RunState::expired: return kExitExpired;
    case domain::RunState::cancelled: return kExitCancelled;
    case domain::RunState::in_doubt:
    case domain::RunState::parked: return kExitInDoubt;
    case domain::RunState::queued:
    case domain::RunState::running: break;
  }
  return kExitFailed;
}

int exit_status(const Error& error) noexcept {
  switch (error.code()) {
    case Errc::full:
    case Errc::closed: return kExitRefused;
    // A used-up budget is final; a full disk is not.
    case Errc::exhausted: return error.retry() == Retry::never ? kExitExpired : kExitFailed;
    case Errc::cancelled: return kExitCancelled;
    default: return kExitFailed;
  }
}

}  // namespace stint::cli
