-- Statements by which the benchmark manipulates a PostgreSQL store directly. `-- name:` begins a script.

-- name: without_events
ALTER TABLE stint.run DISABLE TRIGGER USER
-- name: checkpoint
CHECKPOINT
-- name: analyze
ANALYZE stint.run
