#include "engine/views.hpp"

namespace stint::engine {

bool is_at_rest(const store::Run& run) noexcept {
  return domain::is_finished(run.state) || run.state == domain::RunState::in_doubt ||
         (run.state == domain::RunState::parked && run.hold == domain::Hold::person);
}

}  // namespace stint::engine
