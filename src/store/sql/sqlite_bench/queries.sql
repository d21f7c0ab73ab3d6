-- What the benchmark of the store on one machine does behind its back. `-- name:` begins a script.

-- name: without_events
CREATE TRIGGER event_dropped BEFORE INSERT ON event BEGIN SELECT RAISE(IGNORE); END
