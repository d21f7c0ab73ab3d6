-- Statements by which the benchmark manipulates a SQLite store directly. `-- name:` begins a script.

-- name: without_events
CREATE TRIGGER event_dropped BEFORE INSERT ON event BEGIN SELECT RAISE(IGNORE); END
