/// libpq, loaded for the first connection and kept. Linking it would add 22 libraries and some 8 ms to the start of a
/// program that may never use PostgreSQL and otherwise starts in 0.7 ms.
#pragma once

#include "stint/error.hpp"

#include <libpq-fe.h>

namespace stint::store {

#define STINT_LIBPQ(STINT_EACH)         \
  STINT_EACH(PQclear)                   \
  STINT_EACH(PQconndefaults)            \
  STINT_EACH(PQconnectPoll)             \
  STINT_EACH(PQconnectStartParams)      \
  STINT_EACH(PQconnectionNeedsPassword) \
  STINT_EACH(PQconninfoFree)            \
  STINT_EACH(PQconninfoParse)           \
  STINT_EACH(PQconsumeInput)            \
  STINT_EACH(PQerrorMessage)            \
  STINT_EACH(PQfinish)                  \
  STINT_EACH(PQflush)                   \
  STINT_EACH(PQfreemem)                 \
  STINT_EACH(PQgetResult)               \
  STINT_EACH(PQgetisnull)               \
  STINT_EACH(PQgetlength)               \
  STINT_EACH(PQgetvalue)                \
  STINT_EACH(PQisBusy)                  \
  STINT_EACH(PQnotifies)                \
  STINT_EACH(PQntuples)                 \
  STINT_EACH(PQresultErrorField)        \
  STINT_EACH(PQresultStatus)            \
  STINT_EACH(PQsendQuery)               \
  STINT_EACH(PQsendQueryParams)         \
  STINT_EACH(PQserverVersion)           \
  STINT_EACH(PQsetErrorVerbosity)       \
  STINT_EACH(PQsetNoticeProcessor)      \
  STINT_EACH(PQsetnonblocking)          \
  STINT_EACH(PQsocket)                  \
  STINT_EACH(PQstatus)                  \
  STINT_EACH(PQtransactionStatus)       \
  STINT_EACH(PQunescapeBytea)

struct Libpq {
#define STINT_DECLARE(name) decltype(&::name) name = nullptr;  // NOLINT: a name can't stand in parentheses
  STINT_LIBPQ(STINT_DECLARE)
#undef STINT_DECLARE
};

/// `denied`: it is not installed. Free once it is loaded.
[[nodiscard]] Result<> load_libpq();
/// After load_libpq().
[[nodiscard]] const Libpq& pq() noexcept;

}  // namespace stint::store
