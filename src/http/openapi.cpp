#include "http/api.hpp"
#include "openapi_json.hpp"

namespace stint::http {

std::string_view openapi_text() noexcept { return kOpenapi; }

}  // namespace stint::http
