-- What the second version of the program does otherwise than the first. Its functions are here if they changed, and in
-- stint_v1 if they did not: so a program of the first version, which knows only those, goes on beside it.
-- Locks are taken in the order of 0002_functions.sql.
CREATE SCHEMA stint_v2;
SET LOCAL search_path = stint;

-- ---- tables --------------------------------------------------------------------------------------------------------

-- What its attempts used.
ALTER TABLE run ADD COLUMN tokens bigint NOT NULL DEFAULT 0, ADD COLUMN money_micros bigint NOT NULL DEFAULT 0;
-- The same by day in UTC and agent. Each worker has rows of its own, so that no settle waits for another's; what is old is
-- one row, of worker 0: see prune().
CREATE TABLE spent (
  day date NOT NULL, agent_id int NOT NULL, worker_id bigint NOT NULL, runs bigint NOT NULL, tokens bigint NOT NULL,
  money_micros bigint NOT NULL, PRIMARY KEY (day, agent_id, worker_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE worker ADD COLUMN beaten_at timestamptz;  -- NULL: by a program of the first version
CREATE INDEX run_doubt ON run (run_id) WHERE state = 'in_doubt';  -- for lists: nearly always empty
-- The worker that submitted it and carries it itself: while that lives, no other claims it. Nearly always NULL. In the
-- index, so that what anyone may claim is counted from that alone.
ALTER TABLE run ADD COLUMN kept_for bigint;
DROP INDEX run_ready;
CREATE INDEX run_ready ON run (agent_id, rank, run_id) INCLUDE (kept_for) WHERE state = 'queued' AND hold IS NULL;
-- The capacity that a configuration gave the limit last: so a resize by hand outlives a restart, and what the
-- configuration does not name any more can be taken back.
ALTER TABLE gate ADD COLUMN configured bigint;
-- What the running attempt has reported of its use; tokens and money_micros include it.
ALTER TABLE run ADD COLUMN reported_tokens bigint NOT NULL DEFAULT 0, ADD COLUMN reported_micros bigint NOT NULL DEFAULT 0;
-- What a run and all that draw on its budget have used together. Kept until the last of them is forgotten; the head is one
-- of them. Few runs have any.
CREATE TABLE family (
  family_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, head text COLLATE "C" UNIQUE NOT NULL, tokens bigint NOT NULL,
  money_micros bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE TABLE family_run (run_id bigint, family_id bigint, PRIMARY KEY (run_id, family_id));
CREATE INDEX family_run_by_family ON family_run (family_id);
SET LOCAL search_path = stint_v2, stint_v1, stint;

-- As Ledger::configure. One configuration at a time, and no definition beside it: which agents use a gate decides.
CREATE FUNCTION configure(p_limits text[], p_capacities bigint[], p_agents text[]) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$ BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('stint.define', 0));
  PERFORM make_gates(p_limits);
  WITH said AS (
    SELECT g.gate_id, g.name, g.capacity AS before, l.capacity FROM gate g
      LEFT JOIN unnest(p_limits, p_capacities) l (name, capacity) USING (name)
      WHERE g.configured IS DISTINCT FROM l.capacity AND (l.capacity IS NOT NULL OR (p_agents <> '{}' AND NOT EXISTS (
        SELECT FROM limit_set_gate m JOIN agent a USING (set_id) WHERE m.gate_id = g.gate_id AND a.name <> ALL (p_agents))))
      ORDER BY g.gate_id FOR NO KEY UPDATE OF g),
  sized AS (UPDATE gate g SET configured = s.capacity, capacity = s.capacity FROM said s WHERE g.gate_id = s.gate_id)
  INSERT INTO event (seq, fence, cause, data, at)
    SELECT 0, 0, 'resized', format('{"limit":%s,"capacity":%s}', to_json(s.name), coalesce(s.capacity::text, 'null')), clock()
    FROM said s WHERE s.before IS DISTINCT FROM s.capacity ORDER BY s.gate_id; END $$;

-- Only an account is probed when its pause is over: domain::is_probed.
CREATE FUNCTION pause(p_limit text, p_length_ms bigint) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$ BEGIN
  PERFORM make_gates(ARRAY[p_limit]);
  UPDATE gate SET paused_until = greatest(paused_until, coalesce(later(clock(), p_length_ms), 'infinity')),
      ramp = CASE WHEN p_limit LIKE 'account:%' THEN 1 ELSE ramp END
    WHERE name = p_limit;
  PERFORM note_pauses(ARRAY[p_limit]); END $$;

-- domain::after_settle, word for word. In the place of the first version's, which never says `expired`.
CREATE OR REPLACE FUNCTION stint_v1.next_state(p_settle text, p_stop text, p_unsafe boolean, p_on_crash text,
  p_attempt bigint, p_attempts_max bigint, p_lost bigint, p_lost_max bigint, p_expires_first boolean,
  p_deadline_first boolean)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN p_settle = 'succeeded'                              THEN 'succeeded'  -- also after a late cancel
    WHEN p_settle = 'failed'                                 THEN coalesce(p_stop, 'failed')
    WHEN p_unsafe                                            THEN 'in_doubt'   -- unknown effects outrank a cancel
    WHEN p_stop IS NOT NULL OR p_settle = 'cancelled'        THEN coalesce(p_stop, 'cancelled')
    WHEN p_settle = 'expired'                                THEN 'expired'
    WHEN p_settle = 'lost' AND p_on_crash = 'doubt'          THEN 'in_doubt'
    WHEN p_settle = 'lost' AND p_lost + 1 >= p_lost_max      THEN 'failed'     -- it kills its owners
    WHEN p_settle = 'retry' AND p_attempt >= p_attempts_max  THEN 'failed'
    WHEN p_settle = 'park' AND p_deadline_first              THEN 'expired'
    WHEN p_settle = 'park'                                   THEN 'parked'
    WHEN p_expires_first                                     THEN 'expired'    -- what can't fit ends now
    ELSE 'queued' END $$;

-- ---- workers -------------------------------------------------------------------------------------------------------

CREATE FUNCTION enrol(p_label text, p_lease_ms bigint) RETURNS bigint
LANGUAGE sql SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
  INSERT INTO worker (label, lease_until, beaten_at) SELECT p_label, later(w, p_lease_ms), w FROM wall() w RETURNING worker_id $$;

CREATE FUNCTION beat(p_worker bigint, p_lease_ms bigint) RETURNS TABLE (alive boolean, run_id bigint, fence bigint, stop text)
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_alive boolean; t timestamptz := wall(); BEGIN
  UPDATE worker w SET lease_until = later(t, p_lease_ms), beaten_at = t WHERE w.worker_id = p_worker AND w.state <> 'dead';
  v_alive := FOUND;
  RETURN QUERY SELECT v_alive, r.run_id, r.fence, r.stop FROM (VALUES (1)) one
    LEFT JOIN run r ON r.worker_id = p_worker AND r.state = 'running' AND r.stop IS NOT NULL ORDER BY r.run_id; END $$;

-- p_lease_ms: of those that do not say when they beat.
CREATE FUNCTION workers(p_lease_ms bigint) RETURNS TABLE (worker bigint, label text, state text, ago_ms bigint, runs bigint)
LANGUAGE sql VOLATILE SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
  SELECT w.worker_id, w.label, w.state, greatest(to_ms(wall()) - to_ms(coalesce(w.beaten_at, later(w.lease_until, -p_lease_ms))), 0),
      (SELECT count(*) FROM run r WHERE r.worker_id = w.worker_id AND r.state = 'running')
    FROM worker w WHERE w.state <> 'dead' ORDER BY w.worker_id $$;

-- ---- submit --------------------------------------------------------------------------------------------------------

-- A family is begun by a child of its head, which holds a share lock on it: what the head has used can't change meanwhile.
-- The parent of a run belongs to all families that the run joins, so none of them is forgotten now.
CREATE FUNCTION join_families(p_run bigint, p_heads text[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  WITH made AS (
    INSERT INTO family (head, tokens, money_micros) SELECT r.public_id, r.tokens, r.money_micros
      FROM run_name n JOIN run r USING (run_id) WHERE n.public_id = ANY (p_heads) ORDER BY r.public_id ON CONFLICT DO NOTHING
      RETURNING family_id, head)
  INSERT INTO family_run (run_id, family_id) SELECT n.run_id, m.family_id FROM made m JOIN run_name n ON n.public_id = m.head;
  INSERT INTO family_run (run_id, family_id) SELECT p_run, f.family_id FROM family f WHERE f.head = ANY (p_heads)
    ON CONFLICT DO NOTHING; END $$;

-- As in 0002_functions.sql, if some are kept, or draw on the budgets of others: p_draws_on has their ids, with a space
-- between them. Nobody sees them before they are.
CREATE FUNCTION enqueue(p_ids text[], p_agents text[], p_sessions text[], p_parents text[], p_keys text[], p_priorities int[],
  p_delays_ms bigint[], p_deadlines_ms bigint[], p_budgets_ms bigint[], p_on_crash text[], p_inputs text[], p_kept_for bigint[],
  p_draws_on text[])
RETURNS TABLE (id text, created boolean, error text, message text)
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_for bigint; v_draws_on text; BEGIN
  FOR id, created, error, message, v_for, v_draws_on IN SELECT * FROM ROWS FROM (stint_v1.enqueue(p_ids, p_agents, p_sessions,
      p_parents, p_keys, p_priorities, p_delays_ms, p_deadlines_ms, p_budgets_ms, p_on_crash, p_inputs), unnest(p_kept_for),
      unnest(p_draws_on)) LOOP
    IF created AND v_for IS NOT NULL THEN
      UPDATE run r SET kept_for = v_for FROM run_name n WHERE n.public_id = enqueue.id AND r.run_id = n.run_id;
    END IF;
    IF created AND v_draws_on <> '' THEN
      PERFORM join_families(n.run_id, string_to_array(v_draws_on, ' ')) FROM run_name n WHERE n.public_id = enqueue.id;
    END IF;
    RETURN NEXT;
  END LOOP; END $$;

-- ---- claim ---------------------------------------------------------------------------------------------------------

-- Whether another than p_worker keeps a run, and lives; p_worker NULL: whether anyone does. Not inlined, so that only what
-- has a keeper pays for it.
CREATE FUNCTION is_kept(p_keeper bigint, p_worker bigint) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT p_keeper IS DISTINCT FROM p_worker
    AND EXISTS (SELECT FROM stint.worker w WHERE w.worker_id = p_keeper AND w.state <> 'dead') $$;

-- Gates that p_parent and those above it hold, as far up as they run.
CREATE FUNCTION held_above(p_parent bigint) RETURNS int[] LANGUAGE sql STABLE AS $$
  WITH RECURSIVE above AS (
    SELECT r.run_id, r.parent_id, r.set_id FROM run r WHERE r.run_id = p_parent AND r.state = 'running'
    UNION SELECT r.run_id, r.parent_id, r.set_id FROM above a JOIN run r ON r.run_id = a.parent_id WHERE r.state = 'running')
  SELECT coalesce(array_agg(DISTINCT m.gate_id), '{}') FROM above JOIN limit_set_gate m USING (set_id) $$;

-- A set like p_set without these gates; NULL: nothing is left. Two who make one at once make two, which does no harm.
CREATE FUNCTION set_without(p_set int, p_gates int[]) RETURNS int LANGUAGE plpgsql AS $$
DECLARE v_gates int[]; v_weights bigint[]; v_set int; BEGIN
  PERFORM FROM limit_set_gate WHERE set_id = p_set AND gate_id = ANY (p_gates);
  IF NOT FOUND THEN RETURN p_set; END IF;
  SELECT array_agg(gate_id ORDER BY gate_id), array_agg(weight ORDER BY gate_id) INTO v_gates, v_weights
    FROM limit_set_gate WHERE set_id = p_set AND gate_id <> ALL (p_gates);
  IF v_gates IS NULL THEN RETURN NULL; END IF;
  SELECT m.set_id INTO v_set FROM limit_set_gate m
    WHERE m.set_id IN (SELECT c.set_id FROM limit_set_gate c WHERE c.gate_id = v_gates[1])
    GROUP BY m.set_id HAVING array_agg(m.gate_id ORDER BY m.gate_id) = v_gates
      AND array_agg(m.weight ORDER BY m.gate_id) = v_weights ORDER BY m.set_id LIMIT 1;
  IF FOUND THEN RETURN v_set; END IF;
  INSERT INTO limit_set DEFAULT VALUES RETURNING set_id INTO v_set;
  INSERT INTO limit_set_gate (set_id, gate_id, weight) SELECT v_set, * FROM unnest(v_gates, v_weights);
  RETURN v_set; END $$;

-- Whether the gate is another agent's turn. A turn that lapsed does not count, nor that of one who has nothing to start; a
-- kept run is something, for its keeper asks for it.
CREATE FUNCTION is_anothers_turn(g gate, p_agent int, p_now timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT g.turn_of <> p_agent AND g.turn_until > p_now
    AND EXISTS (SELECT FROM run r WHERE r.agent_id = g.turn_of AND r.state = 'queued' AND r.hold IS NULL) $$;

-- How many runs of the set may start now; NULL: no limit. The rule is domain/gate.cpp's. Exact, because every claim on
-- these gates holds their locks. Takes and gives back turns.
CREATE FUNCTION free_permits(p_agent int, p_set int, p_locked int[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE v record; t timestamptz := clock(); BEGIN
  SELECT min(CASE WHEN g.paused_until > t OR o.turn THEN 0
                  ELSE least((g.capacity - h.units) / m.weight, g.ramp - h.runs) END) AS free,
         array_agg(g.gate_id) FILTER (WHERE m.weight > 1 AND g.shared AND g.capacity - h.units < m.weight) AS short,
         bool_or(g.paused_until > t OR o.turn OR g.last_turn_of = p_agent) AS blocked,
         bool_or(g.turn_of = p_agent OR g.last_turn_of <> p_agent) AS turned INTO v
    FROM limit_set_gate m JOIN gate g USING (gate_id) CROSS JOIN LATERAL held(g.gate_id) h
    CROSS JOIN LATERAL (SELECT CASE WHEN g.turn_of IS NOT NULL THEN is_anothers_turn(g, p_agent, t) END AS turn) o
    WHERE m.set_id = p_set AND (g.gate_id = ANY (p_locked) OR g.paused_until IS NOT NULL);
  IF v.free < 1 THEN
    IF v.short IS NOT NULL AND NOT coalesce(v.blocked, false) THEN
      UPDATE gate SET turn_of = p_agent, turn_until = later(t, 2000) WHERE gate_id = ANY (v.short);
    END IF;
  ELSIF v.turned THEN
    UPDATE gate SET last_turn_of = CASE WHEN turn_of = p_agent THEN p_agent END, turn_of = NULL, turn_until = NULL
      WHERE gate_id = ANY (p_locked) AND (turn_of = p_agent OR last_turn_of <> p_agent);
  END IF;
  RETURN v.free; END $$;

-- As in 0002_functions.sql, where its settings are explained; it tells more of each run.
-- p_only: the one run that is wanted; NULL: whatever is first. Only who names a run is spared the gates held above it.
CREATE FUNCTION claim(p_worker bigint, p_round bigint, p_agent text, p_most bigint, p_only text)
RETURNS TABLE (run_id bigint, id text, fence bigint, attempt bigint, lost bigint, expires_ms bigint, input text, agent text,
  session text, on_crash text, unsafe boolean, left_ms bigint)
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp SET lock_timeout = '200ms'
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE v_worker worker; v_agent int; v_set int; v_parent bigint; v_gates int[]; v_most bigint; t timestamptz; w timestamptz; v_stood bigint;
  BEGIN
  SELECT * INTO v_worker FROM worker w WHERE w.worker_id = p_worker FOR KEY SHARE;
  IF v_worker.worker_id IS NULL OR v_worker.state = 'dead' OR v_worker.lease_until < wall() THEN
    RAISE EXCEPTION USING ERRCODE = 'ST401', MESSAGE = 'the lease of this worker is over';
  END IF;
  IF v_worker.state <> 'live' OR v_worker.round <> p_round THEN RETURN; END IF;
  SELECT agent_id, set_id INTO v_agent, v_set FROM agent WHERE name = p_agent;
  IF NOT FOUND THEN RETURN; END IF;
  IF p_only IS NULL THEN
    PERFORM FROM run r WHERE r.agent_id = v_agent AND r.state = 'queued' AND r.hold IS NULL
      AND (r.kept_for IS NULL OR NOT is_kept(r.kept_for, p_worker)) ORDER BY r.rank, r.run_id LIMIT 1;
  ELSE
    SELECT r.parent_id INTO v_parent FROM run_name n JOIN run r USING (run_id) WHERE n.public_id = p_only AND r.agent_id = v_agent
      AND r.state = 'queued' AND r.hold IS NULL AND NOT is_over(r, wall(), clock())
      AND (r.kept_for IS NULL OR NOT is_kept(r.kept_for, p_worker));
  END IF;
  IF NOT FOUND THEN RETURN; END IF;      -- who has nothing takes no turn
  IF v_parent IS NOT NULL THEN
    PERFORM FROM limit_set_gate m JOIN gate g USING (gate_id) WHERE m.set_id = v_set AND g.paused_until > clock();
    IF FOUND THEN RETURN; END IF;
    v_set := set_without(v_set, held_above(v_parent));
  END IF;
  v_gates := lock_gates(v_set);
  IF v_gates IS NULL THEN RETURN; END IF;
  v_most := least(p_most, free_permits(v_agent, v_set, v_gates));
  IF v_most < 1 THEN RETURN; END IF;
  t := clock(); w := wall(); v_stood := stood(v_agent, t);
  RETURN QUERY
  WITH next AS MATERIALIZED (
    SELECT r.run_id FROM run r
    WHERE r.agent_id = v_agent AND r.state = 'queued' AND r.hold IS NULL AND (r.deadline IS NULL OR r.deadline > w)
      AND (r.budget_until IS NULL OR r.budget_until > later(t, -v_stood))
      AND (p_only IS NULL OR r.public_id = p_only) AND (r.kept_for IS NULL OR NOT is_kept(r.kept_for, p_worker))
    ORDER BY r.rank, r.run_id LIMIT v_most FOR NO KEY UPDATE SKIP LOCKED),
  taken AS (
    UPDATE run u SET state = 'running', cause = 'claimed', changed_at = t, worker_id = p_worker, set_id = v_set,
           fence = u.fence + 1, attempt = u.attempt + 1, seq = u.seq + 1, started_at = t, reported_tokens = 0, reported_micros = 0,
           budget_until = begun_budget(u.budget_until, v_stood, u.started_at, t, u.budget_ms)
    FROM next WHERE u.run_id = next.run_id
    RETURNING u.run_id, u.public_id, u.fence, u.attempt, u.lost, u.deadline, u.budget_until, u.rank, u.session_id, u.on_crash, u.unsafe)
  SELECT k.run_id, k.public_id, k.fence, k.attempt, k.lost, to_ms(w) + l.left_ms, i.body, p_agent, s.key, k.on_crash, k.unsafe, l.left_ms
    FROM taken k CROSS JOIN LATERAL (SELECT time_left(k.deadline, k.budget_until, w, t) AS left_ms) l LEFT JOIN run_input i USING (run_id) LEFT JOIN session s USING (session_id) ORDER BY k.rank, k.run_id; END $$;

CREATE FUNCTION owned(p_worker bigint)
RETURNS TABLE (run_id bigint, id text, fence bigint, attempt bigint, lost bigint, expires_ms bigint, input text, agent text,
  session text, on_crash text, unsafe boolean, left_ms bigint)
LANGUAGE sql VOLATILE SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
  SELECT r.run_id, r.public_id, r.fence, r.attempt, r.lost, to_ms(n.wall) + l.left_ms, i.body, a.name, s.key, r.on_crash, r.unsafe, l.left_ms
    FROM (SELECT wall() AS wall, clock() AS now) n CROSS JOIN run r
    CROSS JOIN LATERAL (SELECT time_left(r.deadline, r.budget_until, n.wall, n.now) AS left_ms) l JOIN agent a USING (agent_id) LEFT JOIN run_input i USING (run_id) LEFT JOIN session s USING (session_id)
    WHERE r.worker_id = p_worker AND r.state = 'running' ORDER BY r.run_id $$;

-- The agents that have something to claim. What is held is counted once, however many agents share a gate; the queue of
-- each is counted up to p_most, from its index alone: hence claim()'s settings.
CREATE FUNCTION ready(p_most bigint) RETURNS TABLE (agent text, runs bigint, startable bigint, rank_ms bigint, takes_turn boolean)
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE t timestamptz := clock(); BEGIN
  RETURN QUERY
  WITH waiting AS MATERIALIZED (
    SELECT a.agent_id, a.name, a.set_id, q.n, q.rank FROM agent a CROSS JOIN LATERAL (
      SELECT count(*) AS n, min(x.rank) AS rank FROM (
        SELECT r.rank FROM run r WHERE r.agent_id = a.agent_id AND r.state = 'queued' AND r.hold IS NULL
          AND (r.kept_for IS NULL OR NOT is_kept(r.kept_for, NULL))
          ORDER BY r.rank, r.run_id LIMIT p_most) x) q
    WHERE q.n > 0),
  carried AS MATERIALIZED (SELECT r.set_id, count(*) AS n FROM run r WHERE r.state = 'running' GROUP BY r.set_id),
  used AS MATERIALIZED (
    SELECT m.gate_id, sum(c.n * m.weight)::bigint AS units, sum(c.n)::bigint AS runs
    FROM carried c JOIN limit_set_gate m USING (set_id) GROUP BY m.gate_id)
  SELECT w.name, w.n, CASE WHEN f.free IS NOT NULL THEN least(w.n, greatest(f.free, 0)) END, to_ms(w.rank),
      coalesce(f.free < 1 AND f.short AND NOT f.blocked, false)
  FROM waiting w CROSS JOIN LATERAL (
    SELECT min(CASE WHEN o.closed THEN 0
                    ELSE least((g.capacity - coalesce(u.units, 0)) / m.weight, g.ramp - coalesce(u.runs, 0)) END) AS free,
           bool_or(m.weight > 1 AND g.shared AND g.capacity - coalesce(u.units, 0) < m.weight) AS short,
           bool_or(o.closed OR coalesce(g.last_turn_of = w.agent_id, false)) AS blocked
    FROM limit_set_gate m JOIN gate g USING (gate_id) LEFT JOIN used u USING (gate_id)
    CROSS JOIN LATERAL (SELECT coalesce(g.paused_until > t, false)
        OR CASE WHEN g.turn_of IS NOT NULL THEN coalesce(is_anothers_turn(g, w.agent_id, t), false) ELSE false END AS closed) o
    WHERE m.set_id = w.set_id) f
  ORDER BY w.rank, w.name; END $$;

-- ---- the end of an attempt -----------------------------------------------------------------------------------------

-- Adds to the families of these runs. Last in a transaction: who holds the lock of a family waits for nothing but other
-- families, in the order of their ids.
CREATE FUNCTION add_use(p_runs bigint[], p_tokens bigint[], p_money_micros bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v_families bigint[]; BEGIN
  SELECT array_agg(DISTINCT family_id) INTO v_families FROM family_run WHERE run_id = ANY (p_runs);
  IF v_families IS NULL THEN RETURN; END IF;
  PERFORM FROM family WHERE family_id = ANY (v_families) ORDER BY family_id FOR NO KEY UPDATE;
  UPDATE family f SET tokens = f.tokens + n.tokens, money_micros = f.money_micros + n.money
    FROM (SELECT m.family_id, sum(u.tokens)::bigint AS tokens, sum(u.money)::bigint AS money
            FROM unnest(p_runs, p_tokens, p_money_micros) u (run_id, tokens, money) JOIN family_run m USING (run_id)
            GROUP BY m.family_id) n
    WHERE f.family_id = n.family_id; END $$;

-- What an attempt has used so far. No row: stale. No event: nothing but the sums has changed.
CREATE FUNCTION report(p_worker bigint, p_run bigint, p_fence bigint, p_tokens bigint, p_money_micros bigint)
RETURNS TABLE (head text, tokens bigint, money_micros bigint)
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE r run; v_tokens bigint; v_micros bigint; BEGIN
  SELECT * INTO r FROM run WHERE run_id = p_run FOR NO KEY UPDATE;
  IF NOT FOUND OR NOT owns(r, p_worker, p_fence) THEN RETURN; END IF;
  v_tokens := p_tokens - r.reported_tokens;
  v_micros := p_money_micros - r.reported_micros;
  IF v_tokens <> 0 OR v_micros <> 0 THEN
    UPDATE run u SET tokens = u.tokens + v_tokens, money_micros = u.money_micros + v_micros, reported_tokens = p_tokens,
        reported_micros = p_money_micros WHERE u.run_id = p_run;
    PERFORM add_use(ARRAY[p_run], ARRAY[v_tokens], ARRAY[v_micros]);
  END IF;
  RETURN QUERY SELECT f.head, f.tokens, f.money_micros FROM family_run m JOIN family f USING (family_id) WHERE m.run_id = p_run
    UNION ALL SELECT r.public_id, r.tokens + v_tokens, r.money_micros + v_micros
      WHERE NOT EXISTS (SELECT FROM family f WHERE f.head = r.public_id); END $$;

CREATE FUNCTION used(p_heads text[]) RETURNS TABLE (head text, tokens bigint, money_micros bigint)
LANGUAGE sql STABLE SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
  SELECT h.head, coalesce(f.tokens, r.tokens, 0), coalesce(f.money_micros, r.money_micros, 0)
  FROM unnest(p_heads) WITH ORDINALITY h (head, at) LEFT JOIN family f ON f.head = h.head
    LEFT JOIN run_name n ON n.public_id = h.head LEFT JOIN run r ON r.run_id = n.run_id ORDER BY h.at $$;

-- As in 0002_functions.sql, and adds up what the attempts used. What is stale adds nothing.
CREATE FUNCTION settle(p_worker bigint, p_runs bigint[], p_fences bigint[], p_settles text[], p_errors text[], p_results text[],
  p_retry_ms bigint[], p_park_on text[], p_park_ms bigint[], p_tokens bigint[], p_money_micros bigint[])
RETURNS TABLE (at bigint, state text) LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE v_sessions bigint[]; v_at bigint[]; v_states text[]; v_used bigint[]; v_tokens bigint[]; v_money bigint[];
  t timestamptz; w timestamptz; BEGIN
  v_sessions := lock_runs(p_runs);
  t := clock(); w := wall();
  -- OFFSET: the runs are looked up one by one. Else a plan may compare all that the worker owns with all that it settles.
  WITH due AS MATERIALIZED (
    SELECT DISTINCT ON (r.run_id) r.*, i.at, i.settle, i.error, i.result, i.park_on, later(t, i.park_ms) AS until, later(w, i.park_ms) AS wall_until,
           CASE i.settle WHEN 'retry' THEN later(t, greatest(i.retry_ms,
             ceil(random() * least(a.backoff_cap_ms, a.backoff_base_ms * 2.0 ^ least(r.attempt, 20)))::bigint)) ELSE t END AS again,
           i.tokens, i.money, a.attempts_max, a.lost_max
    FROM unnest(p_runs, p_fences, p_settles, p_errors, p_results, p_retry_ms, p_park_on, p_park_ms, p_tokens, p_money_micros)
      WITH ORDINALITY AS i (run_id, fence, settle, error, result, retry_ms, park_on, park_ms, tokens, money, at)
      CROSS JOIN LATERAL (SELECT x.run_id, x.agent_id, x.stop, x.unsafe, x.on_crash, x.attempt, x.lost, x.budget_until, x.deadline,
          x.reported_tokens, x.reported_micros, owns(x, p_worker, i.fence) AS owned FROM run x WHERE x.run_id = i.run_id OFFSET 0) r
      JOIN agent a USING (agent_id)
    WHERE r.owned ORDER BY r.run_id, i.at),
  decided AS MATERIALIZED (
    SELECT d.run_id, d.lost, d.agent_id, d.tokens, d.money, d.tokens - d.reported_tokens AS more_tokens,
      d.money - d.reported_micros AS more_money, d.at, d.settle, d.error, d.result, d.park_on, d.until, d.again,
      next_state(d.settle, d.stop, d.unsafe, d.on_crash, d.attempt, d.attempts_max, d.lost, d.lost_max,
        coalesce(time_left(d.deadline, d.budget_until, w, t) <= to_ms(d.again) - to_ms(t), false),
        coalesce(d.settle = 'park' AND d.deadline <= d.wall_until, false)) AS next
    FROM due d),
  ended AS (
    UPDATE run u SET state = n.next, cause = n.settle, changed_at = t,
      error = coalesce(nullif(n.error, ''), CASE n.settle WHEN 'lost' THEN error_of_loss(n.next, n.lost + 1) END,
        CASE WHEN n.next <> 'succeeded' THEN u.error END),
      seq = u.seq + 1, worker_id = NULL, tokens = u.tokens + n.more_tokens, money_micros = u.money_micros + n.more_money,
      reported_tokens = 0, reported_micros = 0,
      hold = CASE WHEN n.next = 'queued' AND n.settle = 'retry' THEN 'backoff'
                  WHEN n.next = 'parked' THEN CASE WHEN n.until IS NULL THEN 'person' ELSE 'quota' END END,
      not_before = CASE WHEN n.next = 'queued' AND n.settle = 'retry' THEN n.again WHEN n.next = 'parked' THEN n.until END,
      attempt = u.attempt - (n.settle IN ('park', 'hand_back', 'lost'))::int, lost = u.lost + (n.settle = 'lost')::int,
      parked_on = CASE WHEN n.next = 'parked' THEN nullif(n.park_on, '') END,
      budget_left_ms = CASE WHEN n.next = 'parked' THEN to_ms(u.budget_until) - to_ms(t) END,
      budget_until = CASE WHEN n.next = 'queued' AND n.settle <> 'retry' THEN by_agents_clock(u.budget_until, u.agent_id, t)
                          WHEN n.next <> 'parked' THEN u.budget_until END,
      unsafe = n.next = 'in_doubt' AND u.unsafe,
      finished_at = CASE WHEN n.next IN ('succeeded', 'failed', 'cancelled', 'expired') THEN t END
    FROM decided n WHERE u.run_id = n.run_id),
  kept AS (
    INSERT INTO run_result (run_id, body) SELECT n.run_id, n.result FROM decided n WHERE n.result <> ''
      ON CONFLICT (run_id) DO UPDATE SET body = excluded.body),
  counted AS (
    INSERT INTO spent AS s (day, agent_id, worker_id, runs, tokens, money_micros)
      SELECT (w AT TIME ZONE 'UTC')::date, n.agent_id, p_worker, count(*), sum(n.tokens)::bigint, sum(n.money)::bigint
      FROM decided n GROUP BY n.agent_id ORDER BY n.agent_id
      ON CONFLICT (day, agent_id, worker_id) DO UPDATE SET runs = s.runs + excluded.runs,
        tokens = s.tokens + excluded.tokens, money_micros = s.money_micros + excluded.money_micros)
  SELECT array_agg(n.at ORDER BY n.at), array_agg(n.next ORDER BY n.at),
      array_agg(n.run_id ORDER BY n.at) FILTER (WHERE n.more_tokens <> 0 OR n.more_money <> 0),
      array_agg(n.more_tokens ORDER BY n.at) FILTER (WHERE n.more_tokens <> 0 OR n.more_money <> 0),
      array_agg(n.more_money ORDER BY n.at) FILTER (WHERE n.more_tokens <> 0 OR n.more_money <> 0)
    INTO v_at, v_states, v_used, v_tokens, v_money FROM decided n;
  IF v_at IS NULL THEN RETURN; END IF;
  IF v_sessions IS NOT NULL THEN PERFORM promote(v_sessions); END IF;
  IF 'park' = ANY (p_settles) OR EXISTS (SELECT FROM gate WHERE ramp IS NOT NULL) THEN
    PERFORM settle_gates(array_agg(p_runs[i]), array_agg(p_settles[i]), array_agg(p_park_on[i]), array_agg(p_park_ms[i]))
      FROM unnest(v_at) i;
  END IF;
  IF v_used IS NOT NULL THEN PERFORM add_use(v_used, v_tokens, v_money); END IF;
  RETURN QUERY SELECT * FROM unnest(v_at, v_states); END $$;

-- As a success does it: settle_gates().
CREATE FUNCTION answered(p_worker bigint, p_run bigint, p_fence bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$ BEGIN
  PERFORM FROM run r WHERE r.run_id = p_run AND owns(r, p_worker, p_fence) FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  IF EXISTS (SELECT FROM gate WHERE ramp IS NOT NULL) THEN
    PERFORM settle_gates(ARRAY[p_run], '{succeeded}', '{""}', '{NULL}');
  END IF;
  RETURN true; END $$;

-- ---- from outside --------------------------------------------------------------------------------------------------

CREATE FUNCTION answer(p_id text) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
DECLARE v_run bigint := must_find(p_id); v_state text; t timestamptz; BEGIN
  SELECT state INTO v_state FROM run WHERE run_id = v_run FOR NO KEY UPDATE;
  IF v_state IS DISTINCT FROM 'parked' THEN
    RAISE EXCEPTION USING ERRCODE = 'ST409', MESSAGE = format('''%s'' is %s, not parked', p_id, v_state);
  END IF;
  t := clock();
  UPDATE run SET state = 'queued', hold = NULL, not_before = NULL, parked_on = NULL, cause = 'resumed', changed_at = t, seq = seq + 1,
      budget_until = by_agents_clock(later(t, budget_left_ms), agent_id, t), budget_left_ms = NULL WHERE run_id = v_run; END $$;

-- ---- looking -------------------------------------------------------------------------------------------------------

CREATE VIEW seen AS
  SELECT r.run_id, r.public_id, r.parent_id, a.name AS agent, s.key AS session, r.parent, r.idem_key, r.state, r.hold, r.stop, r.error,
    r.attempt, r.lost, r.fence, r.seq, r.unsafe, r.on_crash, r.worker_id, to_ms(r.created_at) - (SELECT ahead_ms FROM store_clock) AS created_ms,
    to_ms(r.not_before) - (SELECT ahead_ms FROM store_clock) AS not_before_ms, to_ms(r.deadline) AS deadline_ms,
    least(to_ms(r.deadline), CASE WHEN r.budget_until IS NOT NULL THEN to_ms(budget_end(r)) - (SELECT ahead_ms FROM store_clock) END) AS expires_ms,
    to_ms(r.started_at) - (SELECT ahead_ms FROM store_clock) AS started_ms, to_ms(r.finished_at) - (SELECT ahead_ms FROM store_clock) AS finished_ms, r.tokens, r.money_micros
  FROM run r JOIN agent a USING (agent_id) LEFT JOIN session s USING (session_id);

CREATE FUNCTION why(p_id text) RETURNS TABLE (reason text, detail text, until_ms bigint)
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_run bigint := must_find(p_id); r run; v_above int[] := '{}'; t timestamptz := clock(); BEGIN
  SELECT * INTO r FROM run WHERE run_id = v_run;
  IF r.state NOT IN ('queued', 'parked') THEN RETURN; END IF;
  IF r.hold IS NOT NULL THEN
    RETURN QUERY SELECT r.hold, coalesce((SELECT format('behind %s (%s)', h.public_id, h.state) FROM run h
        WHERE r.hold = 'session' AND h.session_id = r.session_id AND h.finished_at IS NULL ORDER BY h.run_id LIMIT 1), r.parked_on),
      shown_ms(r.not_before);
    RETURN;
  END IF;
  IF r.kept_for IS NOT NULL THEN v_above := held_above(r.parent_id); END IF;   -- it is claimed by its name
  RETURN QUERY
    SELECT w.reason, CASE w.reason WHEN 'paused' THEN g.name WHEN 'probe' THEN format('%s: %s at a time', g.name, g.ramp)
             ELSE format('%s: %s of %s held', g.name, h.units, coalesce(g.capacity::text, 'any')) END,
           shown_ms(CASE w.reason WHEN 'paused' THEN g.paused_until WHEN 'turn' THEN g.turn_until END)
      FROM agent a JOIN limit_set_gate m USING (set_id) JOIN gate g USING (gate_id) CROSS JOIN LATERAL held(g.gate_id) h
      CROSS JOIN LATERAL (SELECT CASE WHEN g.paused_until > t THEN 'paused' WHEN g.gate_id = ANY (v_above) THEN NULL
        WHEN is_anothers_turn(g, r.agent_id, t) THEN 'turn'
        WHEN h.runs >= g.ramp THEN 'probe' WHEN g.capacity - h.units < m.weight THEN 'limit' END AS reason) w
      WHERE a.agent_id = r.agent_id AND w.reason IS NOT NULL ORDER BY g.gate_id;
  RETURN QUERY SELECT 'place', count(*)::text, NULL::bigint FROM (                 -- a person needs no more than 1000
    SELECT FROM run x WHERE x.agent_id = r.agent_id AND x.state = 'queued' AND x.hold IS NULL
      AND (x.run_id = r.run_id OR r.kept_for IS NOT NULL OR x.kept_for IS NULL OR NOT is_kept(x.kept_for, NULL))
      AND (x.rank, x.run_id) <= (r.rank, r.run_id) ORDER BY x.rank, x.run_id LIMIT 1000) y; END $$;

CREATE FUNCTION spent(p_since_ms bigint) RETURNS TABLE (day text, agent text, runs bigint, tokens bigint, money_micros bigint)
LANGUAGE sql STABLE SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
  SELECT to_char(s.day, 'YYYY-MM-DD'), a.name, sum(s.runs)::bigint, sum(s.tokens)::bigint, sum(s.money_micros)::bigint
  FROM spent s JOIN agent a USING (agent_id) WHERE s.day >= (from_ms(p_since_ms) AT TIME ZONE 'UTC')::date
  GROUP BY s.day, a.name ORDER BY s.day, a.name $$;

-- Also makes one row of what several workers used on a day that is over. A settle that writes such a row meanwhile is either
-- waited for, or makes a new one.
CREATE FUNCTION prune(p_age_ms bigint, p_most bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$ BEGIN
  WITH old AS (
    DELETE FROM spent s WHERE s.worker_id <> 0 AND s.day < (later(wall(), -p_age_ms) AT TIME ZONE 'UTC')::date RETURNING s.*)
  INSERT INTO spent AS s (day, agent_id, worker_id, runs, tokens, money_micros)
    SELECT o.day, o.agent_id, 0, sum(o.runs)::bigint, sum(o.tokens)::bigint, sum(o.money_micros)::bigint
    FROM old o GROUP BY o.day, o.agent_id ORDER BY o.day, o.agent_id
    ON CONFLICT (day, agent_id, worker_id) DO UPDATE SET runs = s.runs + excluded.runs,
      tokens = s.tokens + excluded.tokens, money_micros = s.money_micros + excluded.money_micros;
  RETURN stint_v1.prune(p_age_ms, p_most); END $$;

-- If no process has forgotten all that is old within p_every_ms.
CREATE FUNCTION prune_if_due(p_keep_ms bigint, p_every_ms bigint, p_most bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
DECLARE v_now bigint := to_ms(clock()); v_forgotten bigint; BEGIN
  PERFORM FROM meta WHERE key = 'pruned_at' AND value > v_now - p_every_ms;
  IF FOUND THEN RETURN 0; END IF;
  v_forgotten := prune(p_keep_ms, p_most);
  IF v_forgotten < p_most THEN                           -- else there may be more: it stays due
    INSERT INTO meta (key, value) VALUES ('pruned_at', v_now) ON CONFLICT (key) DO UPDATE SET value = excluded.value;
  END IF;
  RETURN v_forgotten; END $$;

-- ---- from one store to another -------------------------------------------------------------------------------------

-- As in 0002_functions.sql, and brings along what the runs used.
CREATE FUNCTION load(p_ids text[], p_agents text[], p_sessions text[], p_parents text[], p_keys text[], p_on_crash text[],
  p_states text[], p_holds text[], p_stops text[], p_errors text[], p_parked_on text[], p_inputs text[], p_results text[],
  p_causes text[], p_ranks_ms bigint[], p_created_ms bigint[], p_not_before_ms bigint[], p_deadlines_ms bigint[],
  p_budgets_ms bigint[], p_left_ms bigint[], p_until_ms bigint[], p_started_ms bigint[], p_finished_ms bigint[],
  p_changed_ms bigint[], p_attempts bigint[], p_lost bigint[], p_fences bigint[], p_seqs bigint[], p_unsafe bigint[],
  e_ids text[], e_seqs bigint[], e_fences bigint[], e_workers bigint[], e_causes text[], e_states text[], e_holds text[],
  e_errors text[], e_data text[], e_at_ms bigint[],
  o_ids text[], o_bytes bigint[], o_at bigint[], o_bodies text[], p_tokens bigint[],
  p_money_micros bigint[], f_ids text[], f_heads text[], f_tokens bigint[], f_money_micros bigint[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
DECLARE v_fresh text[]; v_added bigint; BEGIN
  SELECT array_agg(u.id) INTO v_fresh FROM unnest(p_ids) u (id)
    WHERE NOT EXISTS (SELECT FROM run_name n WHERE n.public_id = u.id);
  v_added := stint_v1.load(
    p_ids, p_agents, p_sessions, p_parents, p_keys, p_on_crash, p_states, p_holds, p_stops, p_errors, p_parked_on,
    p_inputs, p_results, p_causes, p_ranks_ms, p_created_ms, p_not_before_ms, p_deadlines_ms, p_budgets_ms, p_left_ms,
    p_until_ms, p_started_ms, p_finished_ms, p_changed_ms, p_attempts, p_lost, p_fences, p_seqs, p_unsafe, e_ids,
    e_seqs, e_fences, e_workers, e_causes, e_states, e_holds, e_errors, e_data, e_at_ms, o_ids, o_bytes, o_at,
    o_bodies);
  IF v_fresh IS NULL THEN RETURN v_added; END IF;
  UPDATE run r SET tokens = u.tokens, money_micros = u.money
    FROM unnest(p_ids, p_tokens, p_money_micros) u (id, tokens, money) JOIN run_name n ON n.public_id = u.id
    WHERE r.run_id = n.run_id AND u.id = ANY (v_fresh) AND (u.tokens <> 0 OR u.money <> 0);
  -- The whole sum of a family comes with the first of its runs; the others only join.
  INSERT INTO family (head, tokens, money_micros) SELECT u.head, max(u.tokens), max(u.money)
    FROM unnest(f_ids, f_heads, f_tokens, f_money_micros) u (id, head, tokens, money) WHERE u.id = ANY (v_fresh)
    GROUP BY u.head ORDER BY u.head COLLATE "C" ON CONFLICT DO NOTHING;
  INSERT INTO family_run (run_id, family_id) SELECT n.run_id, f.family_id FROM unnest(f_ids, f_heads) u (id, head)
    JOIN run_name n ON n.public_id = u.id JOIN family f ON f.head = u.head WHERE u.id = ANY (v_fresh) ON CONFLICT DO NOTHING;
  RETURN v_added; END $$;
