-- What the second version of the program does otherwise than the first. Its functions are here if they changed, and in
-- stint_v1 if they did not: so a program of the first version, which knows only those, goes on beside it.
-- Locks are taken in the order of 0002_functions.sql.
CREATE SCHEMA stint_v2;
SET LOCAL search_path = stint_v2, stint_v1, stint;

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

-- ---- claim ---------------------------------------------------------------------------------------------------------

-- Whether the gate is another agent's turn. A turn that lapsed does not count, nor that of one who has nothing to start.
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
CREATE FUNCTION claim(p_worker bigint, p_round bigint, p_agent text, p_most bigint)
RETURNS TABLE (run_id bigint, id text, fence bigint, attempt bigint, lost bigint, expires_ms bigint, input text, agent text,
  session text, on_crash text, unsafe boolean, left_ms bigint)
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp SET lock_timeout = '200ms'
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE v_worker worker; v_agent int; v_set int; v_gates int[]; v_most bigint; t timestamptz; BEGIN
  SELECT * INTO v_worker FROM worker w WHERE w.worker_id = p_worker FOR KEY SHARE;
  IF v_worker.worker_id IS NULL OR v_worker.state = 'dead' OR v_worker.lease_until < clock() THEN
    RAISE EXCEPTION USING ERRCODE = 'ST401', MESSAGE = 'the lease of this worker is over';
  END IF;
  IF v_worker.state <> 'live' OR v_worker.round <> p_round THEN RETURN; END IF;
  SELECT agent_id, set_id INTO v_agent, v_set FROM agent WHERE name = p_agent;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM FROM run r WHERE r.agent_id = v_agent AND r.state = 'queued' AND r.hold IS NULL ORDER BY r.rank, r.run_id LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;      -- who has nothing takes no turn
  v_gates := lock_gates(v_set);
  IF v_gates IS NULL THEN RETURN; END IF;
  v_most := least(p_most, free_permits(v_agent, v_set, v_gates));
  IF v_most < 1 THEN RETURN; END IF;
  t := clock();
  RETURN QUERY
  WITH next AS MATERIALIZED (
    SELECT r.run_id FROM run r
    WHERE r.agent_id = v_agent AND r.state = 'queued' AND r.hold IS NULL AND (r.expires_at IS NULL OR r.expires_at > t)
    ORDER BY r.rank, r.run_id LIMIT v_most FOR NO KEY UPDATE SKIP LOCKED),
  taken AS (
    UPDATE run u SET state = 'running', cause = 'claimed', changed_at = t, worker_id = p_worker, set_id = v_set,
           fence = u.fence + 1, attempt = u.attempt + 1, seq = u.seq + 1, started_at = t,
           budget_until = coalesce(u.budget_until, later(t, u.budget_ms))
    FROM next WHERE u.run_id = next.run_id
    RETURNING u.run_id, u.public_id, u.fence, u.attempt, u.lost, u.expires_at, u.rank, u.session_id, u.on_crash, u.unsafe)
  SELECT k.run_id, k.public_id, k.fence, k.attempt, k.lost, to_ms(k.expires_at), i.body, p_agent, s.key, k.on_crash, k.unsafe,
      to_ms(k.expires_at) - to_ms(t)
    FROM taken k LEFT JOIN run_input i USING (run_id) LEFT JOIN session s USING (session_id) ORDER BY k.rank, k.run_id; END $$;

CREATE FUNCTION owned(p_worker bigint)
RETURNS TABLE (run_id bigint, id text, fence bigint, attempt bigint, lost bigint, expires_ms bigint, input text, agent text,
  session text, on_crash text, unsafe boolean, left_ms bigint)
LANGUAGE sql VOLATILE SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
  SELECT r.run_id, r.public_id, r.fence, r.attempt, r.lost, to_ms(r.expires_at), i.body, a.name, s.key, r.on_crash, r.unsafe,
      to_ms(r.expires_at) - to_ms(clock())
    FROM run r JOIN agent a USING (agent_id) LEFT JOIN run_input i USING (run_id) LEFT JOIN session s USING (session_id)
    WHERE r.worker_id = p_worker AND r.state = 'running' ORDER BY r.run_id $$;

-- The agents that have something to claim. What is held is counted once, however many agents share a gate; the queue of
-- each is counted up to p_most, from its index alone: hence claim()'s settings.
CREATE FUNCTION ready(p_most bigint) RETURNS TABLE (agent text, runs bigint, startable bigint, rank_ms bigint)
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE t timestamptz := clock(); BEGIN
  RETURN QUERY
  WITH waiting AS MATERIALIZED (
    SELECT a.agent_id, a.name, a.set_id, q.n, q.rank FROM agent a CROSS JOIN LATERAL (
      SELECT count(*) AS n, min(x.rank) AS rank FROM (
        SELECT r.rank FROM run r WHERE r.agent_id = a.agent_id AND r.state = 'queued' AND r.hold IS NULL
          ORDER BY r.rank, r.run_id LIMIT p_most) x) q
    WHERE q.n > 0),
  carried AS MATERIALIZED (SELECT r.set_id, count(*) AS n FROM run r WHERE r.state = 'running' GROUP BY r.set_id),
  used AS MATERIALIZED (
    SELECT m.gate_id, sum(c.n * m.weight)::bigint AS units, sum(c.n)::bigint AS runs
    FROM carried c JOIN limit_set_gate m USING (set_id) GROUP BY m.gate_id)
  SELECT w.name, w.n, CASE WHEN f.free IS NOT NULL THEN least(w.n, greatest(f.free, 0)) END, to_ms(w.rank)
  FROM waiting w CROSS JOIN LATERAL (
    SELECT min(CASE WHEN g.paused_until > t THEN 0
                    WHEN g.turn_of <> w.agent_id AND g.turn_until > t
                      AND EXISTS (SELECT FROM waiting o WHERE o.agent_id = g.turn_of) THEN 0
                    ELSE least((g.capacity - coalesce(u.units, 0)) / m.weight, g.ramp - coalesce(u.runs, 0)) END) AS free
    FROM limit_set_gate m JOIN gate g USING (gate_id) LEFT JOIN used u USING (gate_id) WHERE m.set_id = w.set_id) f
  ORDER BY w.rank, w.name; END $$;

-- ---- looking -------------------------------------------------------------------------------------------------------

CREATE FUNCTION why(p_id text) RETURNS TABLE (reason text, detail text, until_ms bigint)
LANGUAGE plpgsql SET search_path = stint_v2, stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_run bigint := must_find(p_id); r run; t timestamptz := clock(); BEGIN
  SELECT * INTO r FROM run WHERE run_id = v_run;
  IF r.state NOT IN ('queued', 'parked') THEN RETURN; END IF;
  IF r.hold IS NOT NULL THEN
    RETURN QUERY SELECT r.hold, coalesce((SELECT format('behind %s (%s)', h.public_id, h.state) FROM run h
        WHERE r.hold = 'session' AND h.session_id = r.session_id AND h.finished_at IS NULL ORDER BY h.run_id LIMIT 1), r.parked_on),
      to_ms(r.not_before);
    RETURN;
  END IF;
  RETURN QUERY
    SELECT w.reason, CASE WHEN w.reason = 'paused' THEN g.name
             ELSE format('%s: %s of %s held', g.name, h.units, coalesce(g.capacity::text, 'any')) END,
           to_ms(CASE w.reason WHEN 'paused' THEN g.paused_until WHEN 'turn' THEN g.turn_until END)
      FROM agent a JOIN limit_set_gate m USING (set_id) JOIN gate g USING (gate_id) CROSS JOIN LATERAL held(g.gate_id) h
      CROSS JOIN LATERAL (SELECT CASE WHEN g.paused_until > t THEN 'paused' WHEN is_anothers_turn(g, r.agent_id, t) THEN 'turn'
        WHEN g.capacity - h.units < m.weight OR h.runs >= g.ramp THEN 'limit' END AS reason) w
      WHERE a.agent_id = r.agent_id AND w.reason IS NOT NULL ORDER BY g.gate_id;
  RETURN QUERY SELECT 'place', count(*)::text, NULL::bigint FROM (                 -- a person needs no more than 1000
    SELECT FROM run x WHERE x.agent_id = r.agent_id AND x.state = 'queued' AND x.hold IS NULL
      AND (x.rank, x.run_id) <= (r.rank, r.run_id) ORDER BY x.rank, x.run_id LIMIT 1000) y; END $$;
