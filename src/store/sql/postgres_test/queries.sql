-- Statements by which tests manipulate a PostgreSQL store directly. `-- name:` begins a statement or a script.

-- name: stand_still
CREATE SCHEMA stint_test;
CREATE TABLE stint_test.clock (now timestamptz NOT NULL);
INSERT INTO stint_test.clock VALUES (stint_v1.from_ms(0));
CREATE OR REPLACE FUNCTION stint_v1.wall() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT now FROM stint_test.clock';
-- name: go_on
CREATE OR REPLACE FUNCTION stint_v1.wall() RETURNS timestamptz LANGUAGE sql VOLATILE AS
  $$ SELECT date_trunc('milliseconds', clock_timestamp()) $$;
-- name: set_clock
UPDATE stint_test.clock SET now = stint_v1.from_ms($1)
-- name: begin
BEGIN
-- name: commit
COMMIT
-- name: end_lease
UPDATE stint.node SET lease_until = stint_v1.wall() - interval '1 s' WHERE node_id = $1
-- name: store_clock
SELECT ahead_ms, moved FROM stint.store_clock
-- name: count_blocked
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
-- name: patient_claims
ALTER FUNCTION stint_v1.claim SET lock_timeout = '30s'
-- name: set_schema_version
UPDATE stint.meta SET value = $2 WHERE key = $1

-- name: next_states
SELECT stint_v1.next_state(f.settle, nullif(f.stop, 'none'), f.unsafe, f.on_crash, f.attempt, 2, f.lost, 2, f.expires, f.deadline)
FROM unnest($1::text[], $2::text[], $3::boolean[], $4::text[], $5::bigint[], $6::bigint[], $7::boolean[], $8::boolean[])
  WITH ORDINALITY AS f (settle, stop, unsafe, on_crash, attempt, lost, expires, deadline, at) ORDER BY f.at

-- name: claim_of
SELECT * FROM stint_v1.claim($1, 0, $2, 1, NULL, '')
-- name: count_spent
SELECT count(*), sum(runs), sum(tokens) FROM stint.spent
-- name: enqueue_one
SELECT * FROM stint_v1.enqueue(ARRAY[$1], ARRAY[$2], ARRAY[$3], '{""}', '{""}', '{0}', '{0}', '{NULL}', '{NULL}', '{rerun}', '{""}', '{""}')
-- name: count_sets
SELECT count(*) FROM stint.limit_set
-- name: lock_limit
SELECT limit_id FROM stint.named_limit WHERE name = $1 FOR UPDATE
-- name: count_deadlocks
SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()
-- name: gapless
SELECT count(*) FROM stint.run r WHERE r.seq <> (SELECT count(*) FROM stint.event e WHERE e.run_id = r.run_id)
-- name: ends
SELECT count(*) FROM (SELECT e.run_id FROM stint.event e WHERE e.state IN ('succeeded', 'failed', 'cancelled', 'expired')
  GROUP BY e.run_id HAVING count(*) > 1) x
-- name: heads
SELECT count(*) FROM stint.run WHERE finished_at IS NULL AND hold IS NULL

-- Known-bad variants of the functions: with each of them a test must see a promise broken.
-- name: count_then_claim
-- The count is right, but stale before the claim.
CREATE OR REPLACE FUNCTION stint_v1.lock_limits(p_set int) RETURNS int[] LANGUAGE sql AS $$
  SELECT coalesce(array_agg(limit_id), '{}') FROM stint.limit_set_member WHERE set_id = p_set $$;
-- name: lock_and_count_in_one_statement
-- The snapshot of the count is older than the lock for which it waited.
CREATE OR REPLACE FUNCTION stint_v1.lock_limits(p_set int) RETURNS int[] LANGUAGE sql AS $$
  SELECT coalesce(array_agg(limit_id), '{}') FROM stint.limit_set_member WHERE set_id = p_set $$;
CREATE OR REPLACE FUNCTION stint_v1.free_permits(p_agent int, p_set int, p_locked int[]) RETURNS bigint LANGUAGE sql AS $$
  WITH g AS MATERIALIZED (SELECT * FROM stint.named_limit WHERE limit_id = ANY (p_locked) ORDER BY limit_id FOR NO KEY UPDATE)
  SELECT min((g.capacity - h.units) / m.weight) FROM g JOIN stint.limit_set_member m ON m.limit_id = g.limit_id AND m.set_id = p_set
    CROSS JOIN LATERAL stint_v1.held(g.limit_id) h $$;
-- name: settle_without_fence
-- Accepts any settlement of a running run.
CREATE OR REPLACE FUNCTION stint_v1.owns(r stint.run, p_node bigint, p_fence bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT r.state = 'running' $$;
-- name: session_without_lock
-- Two submits see no head.
CREATE OR REPLACE FUNCTION stint_v1.lock_sessions(p_sessions bigint[]) RETURNS void LANGUAGE sql AS '';
CREATE OR REPLACE FUNCTION stint_v1.open_sessions(p_keys text[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO stint.session (key) SELECT k FROM unnest(p_keys) k ON CONFLICT DO NOTHING $$;
-- name: repeat_unsafe
-- Simply runs a lost attempt again.
CREATE OR REPLACE FUNCTION stint_v1.next_state(p_settle text, p_stop text, p_unsafe boolean, p_on_crash text, p_attempt bigint,
  p_attempts_max bigint, p_lost bigint, p_lost_max bigint, p_expires_first boolean, p_deadline_first boolean)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_settle IN ('succeeded', 'failed', 'cancelled') THEN p_settle WHEN p_settle = 'park' THEN 'parked' ELSE 'queued' END $$;
-- name: owned_without_round
-- Does not see what a lost claim does later.
CREATE OR REPLACE FUNCTION stint_v1.new_round(p_node bigint) RETURNS bigint LANGUAGE sql AS $$
  SELECT round FROM stint.node WHERE node_id = p_node $$;
-- name: declare_dead_early
-- Declares a node dead long before its lease is over.
DO $do$ BEGIN EXECUTE replace(pg_get_functiondef('stint_v1.declare_dead'::regproc), 'lease_until < wall()',
  'lease_until < wall() + interval ''850 ms'''); END $do$;
-- name: announce_nothing
CREATE OR REPLACE FUNCTION stint_v1.announce() RETURNS void LANGUAGE sql AS '';

-- Possible answers of a server.
-- name: count_listeners
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN stint'
-- name: end_listeners
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN stint'
-- name: full_disk
CREATE OR REPLACE FUNCTION stint_v1.announce() RETURNS void LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'could not extend file: No space left on device'; END $$;
