-- What the benchmark of the store of a fleet does behind its back. `-- name:` begins a script.

-- name: without_events
ALTER TABLE stint.run DISABLE TRIGGER USER
-- name: checkpoint
CHECKPOINT
-- name: analyze
ANALYZE stint.run
