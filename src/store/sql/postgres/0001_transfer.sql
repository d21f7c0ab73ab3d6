-- Deleting old runs, and moving runs between stores.

-- Deletes ended runs with everything that belongs to them and events of the fleet as old, then sessions without a run
-- and the rows of nodes long dead. Also merges what several nodes used in an hour of a past day into one row, and old hours into the
-- first one of their day. A settle that writes such a row meanwhile either makes this wait, or creates a new row.
-- Events are missing from the feed up to this one.
CREATE FUNCTION mark_pruned(p_xid xid8, p_id bigint) RETURNS void LANGUAGE sql AS $$
  UPDATE stint.pruned SET xid = p_xid, id = p_id WHERE (xid, id) < (p_xid, p_id) $$;

CREATE FUNCTION prune(p_age_ms bigint, p_most bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_before timestamptz := later(clock(), -p_age_ms); v_runs bigint[]; v_sessions bigint[]; v_marked text; BEGIN
  WITH days AS (SELECT hour_of(later(wall(), -p_age_ms)) / 24 * 24 AS past, hour_of(wall()) / 24 * 24 - 192 AS old),  -- kHoursKept
  old AS (
    DELETE FROM spent s USING days d WHERE (s.node_id <> 0 AND s.hour < d.past)
        OR (s.hour < d.old AND (s.node_id <> 0 OR s.hour % 24 <> 0))
      RETURNING CASE WHEN s.hour < d.old THEN s.hour / 24 * 24 ELSE s.hour END AS hour, s.agent_id, s.runs, s.tokens, s.cost_micros)
  INSERT INTO spent AS s (hour, agent_id, node_id, runs, tokens, cost_micros)
    SELECT o.hour, o.agent_id, 0, sum(o.runs)::bigint, sum(o.tokens)::bigint, sum(o.cost_micros)::bigint
    FROM old o GROUP BY o.hour, o.agent_id ORDER BY o.hour, o.agent_id
    ON CONFLICT (hour, agent_id, node_id) DO UPDATE SET runs = s.runs + excluded.runs,
      tokens = s.tokens + excluded.tokens, cost_micros = s.cost_micros + excluded.cost_micros;
  DELETE FROM node WHERE node_id IN (
    SELECT node_id FROM node WHERE state = 'dead' AND lease_until < later(wall(), -p_age_ms) LIMIT p_most FOR UPDATE SKIP LOCKED);
  PERFORM forget_batches(v_before, p_most);
  WITH gone AS (DELETE FROM event WHERE run_id IS NULL AND at < v_before RETURNING xid, id)
  SELECT mark_pruned(g.xid, g.id) FROM (SELECT xid, id FROM gone ORDER BY xid DESC, id DESC LIMIT 1) g INTO v_marked;
  SELECT array_agg(run_id), array_agg(DISTINCT session_id) FILTER (WHERE session_id IS NOT NULL) INTO v_runs, v_sessions
    FROM (SELECT run_id, session_id FROM run WHERE finished_at < v_before AND finished_at IS NOT NULL
          ORDER BY finished_at LIMIT p_most FOR UPDATE SKIP LOCKED) x;
  IF v_runs IS NULL THEN RETURN 0; END IF;
  DELETE FROM run_input WHERE run_id = ANY (v_runs);
  DELETE FROM run_result WHERE run_id = ANY (v_runs);
  DELETE FROM output WHERE run_id = ANY (v_runs);
  DELETE FROM output_chunk WHERE run_id = ANY (v_runs);
  DELETE FROM message WHERE run_id = ANY (v_runs);
  WITH gone AS (DELETE FROM event WHERE run_id = ANY (v_runs) RETURNING xid, id)
  SELECT mark_pruned(g.xid, g.id) FROM (SELECT xid, id FROM gone ORDER BY xid DESC, id DESC LIMIT 1) g INTO v_marked;
  WITH gone AS (DELETE FROM family_run WHERE run_id = ANY (v_runs) RETURNING family_id)
  DELETE FROM family f USING gone WHERE f.family_id = gone.family_id
    AND NOT EXISTS (SELECT FROM family_run o WHERE o.family_id = f.family_id AND o.run_id <> ALL (v_runs));
  DELETE FROM run_name n USING run r WHERE r.run_id = ANY (v_runs) AND n.public_id = r.public_id;
  DELETE FROM run WHERE run_id = ANY (v_runs);
  SELECT array_agg(session_id) INTO v_sessions FROM (
    SELECT session_id FROM session WHERE session_id = ANY (v_sessions) FOR UPDATE SKIP LOCKED) s;
  DELETE FROM session s WHERE s.session_id = ANY (v_sessions)
    AND NOT EXISTS (SELECT FROM run r WHERE r.session_id = s.session_id AND r.finished_at IS NULL)
    AND NOT EXISTS (SELECT FROM run r WHERE r.session_id = s.session_id AND r.finished_at IS NOT NULL);
  RETURN cardinality(v_runs); END $$;

-- Prunes if no process has completed a prune within p_every_ms.
CREATE FUNCTION prune_if_due(p_keep_ms bigint, p_every_ms bigint, p_most bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_now bigint := to_ms(clock()); v_forgotten bigint; BEGIN
  PERFORM FROM meta WHERE key = 'pruned_at' AND value > v_now - p_every_ms;
  IF FOUND THEN RETURN 0; END IF;
  v_forgotten := prune(p_keep_ms, p_most);
  IF v_forgotten < p_most THEN                           -- otherwise there may be more: it stays due
    INSERT INTO meta (key, value) VALUES ('pruned_at', v_now) ON CONFLICT (key) DO UPDATE SET value = excluded.value;
  END IF;
  RETURN v_forgotten; END $$;

CREATE FUNCTION agents() RETURNS TABLE (name text, queued_max bigint, attempts_max bigint, lost_max bigint,
  "limit" text, weight bigint)
LANGUAGE sql STABLE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT a.name, a.queued_max, a.attempts_max, a.lost_max, g.name, m.weight
  FROM agent a LEFT JOIN limit_set_member m USING (set_id) LEFT JOIN named_limit g USING (limit_id) ORDER BY a.name, g.name $$;

-- Refuses runs of agents that are not here, and runs whose key another run has here.
CREATE FUNCTION check_load(p_ids text[], p_agents text[], p_keys text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v_wrong record; BEGIN
  SELECT u.agent INTO v_wrong FROM unnest(p_agents) u (agent) WHERE NOT EXISTS (SELECT FROM agent a WHERE a.name = u.agent);
  IF FOUND THEN RAISE EXCEPTION USING ERRCODE = 'ST400', MESSAGE = format('there is no agent ''%s''', v_wrong.agent); END IF;
  SELECT u.id, u.key, r.public_id INTO v_wrong FROM unnest(p_ids, p_agents, p_keys) u (id, agent, key)
    JOIN agent a ON a.name = u.agent JOIN run r ON r.agent_id = a.agent_id AND r.idem_key = u.key
    WHERE u.key <> '' AND r.public_id <> u.id LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'ST409',
      MESSAGE = format('run %s has the key ''%s'', which run %s has here', v_wrong.id, v_wrong.key, v_wrong.public_id);
  END IF; END $$;

-- A run of seq 1 has one event, which the trigger writes.
CREATE FUNCTION load_events(p_runs bigint[], p_ahead interval, e_ids text[], e_seqs bigint[], e_fences bigint[], e_nodes bigint[],
  e_causes text[], e_states text[], e_holds text[], e_errors text[], e_data text[], e_at_ms bigint[]) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO event (run_id, seq, fence, node_id, cause, state, hold, error, data, at)
    SELECT r.run_id, u.seq, u.fence, u.node_id, u.cause, nullif(u.state, ''), nullif(u.hold, 'none'), nullif(u.error, ''),
      nullif(u.data, ''), from_ms(u.at_ms) + p_ahead
    FROM unnest(e_ids, e_seqs, e_fences, e_nodes, e_causes, e_states, e_holds, e_errors, e_data, e_at_ms)
      WITH ORDINALITY AS u (id, seq, fence, node_id, cause, state, hold, error, data, at_ms, at)
    JOIN run_name m ON m.public_id = u.id JOIN run r ON r.run_id = m.run_id
    WHERE m.run_id = ANY (p_runs) AND r.seq > 1 ORDER BY u.at; END $$;

CREATE FUNCTION load_output(p_runs bigint[], o_ids text[], o_bytes bigint[], o_at bigint[], o_bodies text[]) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO output (run_id, bytes) SELECT m.run_id, max(u.bytes) FROM unnest(o_ids, o_bytes) u (id, bytes)
    JOIN run_name m ON m.public_id = u.id WHERE m.run_id = ANY (p_runs) GROUP BY m.run_id;
  INSERT INTO output_chunk (run_id, at, body) SELECT m.run_id, u.at, decode(u.body, 'hex')
    FROM unnest(o_ids, o_at, o_bodies) u (id, at, body) JOIN run_name m ON m.public_id = u.id WHERE m.run_id = ANY (p_runs); END $$;

CREATE FUNCTION load_messages(p_runs bigint[], m_ids text[], m_at bigint[], m_ends bigint[], m_bodies text[]) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO message (run_id, at, ends, body) SELECT m.run_id, u.at, u.ends, decode(u.body, 'hex')
    FROM unnest(m_ids, m_at, m_ends, m_bodies) u (id, at, ends, body) JOIN run_name m ON m.public_id = u.id
    WHERE m.run_id = ANY (p_runs); END $$;

-- The whole sum of a family comes with the first of its runs; the others only join.
CREATE FUNCTION load_families(p_runs bigint[], f_ids text[], f_heads text[], f_tokens bigint[], f_cost_micros bigint[]) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO family (head, tokens, cost_micros) SELECT u.head, max(u.tokens), max(u.cost)
    FROM unnest(f_ids, f_heads, f_tokens, f_cost_micros) u (id, head, tokens, cost) JOIN run_name n ON n.public_id = u.id
    WHERE n.run_id = ANY (p_runs) GROUP BY u.head ORDER BY u.head COLLATE "C" ON CONFLICT DO NOTHING;
  INSERT INTO family_run (run_id, family_id) SELECT n.run_id, f.family_id FROM unnest(f_ids, f_heads) u (id, head)
    JOIN run_name n ON n.public_id = u.id JOIN family f ON f.head = u.head WHERE n.run_id = ANY (p_runs) ON CONFLICT DO NOTHING; END $$;

-- Runs with their events and outputs, their families and what they used; those that are here already stay as they are. The arrays
-- of one kind are as long as each other. Returns how many were added.
CREATE FUNCTION load(p_ids text[], p_agents text[], p_sessions text[], p_parents text[], p_keys text[], p_on_crash text[],
  p_states text[], p_holds text[], p_stops text[], p_errors text[], p_parked_on text[], p_inputs text[], p_results text[],
  p_causes text[], p_ranks_ms bigint[], p_created_ms bigint[], p_not_before_ms bigint[], p_deadlines_ms bigint[],
  p_budgets_ms bigint[], p_left_ms bigint[], p_until_ms bigint[], p_started_ms bigint[], p_finished_ms bigint[],
  p_changed_ms bigint[], p_attempts bigint[], p_lost bigint[], p_fences bigint[], p_seqs bigint[], p_unsafe bigint[],
  e_ids text[], e_seqs bigint[], e_fences bigint[], e_nodes bigint[], e_causes text[], e_states text[], e_holds text[],
  e_errors text[], e_data text[], e_at_ms bigint[],
  o_ids text[], o_bytes bigint[], o_at bigint[], o_bodies text[], p_tokens bigint[],
  p_cost_micros bigint[], f_ids text[], f_heads text[], f_tokens bigint[], f_cost_micros bigint[],
  m_ids text[], m_at bigint[], m_ends bigint[], m_bodies text[], p_search text[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_keys text[]; v_sessions bigint[]; v_added bigint; v_runs bigint[]; t timestamptz;
  v_ahead interval := (SELECT ahead_ms FROM store_clock) * interval '1 millisecond'; BEGIN
  SELECT array_agg(DISTINCT s) INTO v_keys FROM unnest(p_sessions) s WHERE s <> '';
  IF v_keys IS NOT NULL THEN PERFORM open_sessions(v_keys); END IF;
  PERFORM check_load(p_ids, p_agents, p_keys);
  t := clock();
  WITH named AS (
    INSERT INTO run_name (public_id) SELECT u.id FROM unnest(p_ids) WITH ORDINALITY u (id, at) ORDER BY u.at
      ON CONFLICT DO NOTHING RETURNING run_id, public_id),
  added AS (
    INSERT INTO run (run_id, public_id, agent_id, session_id, parent, idem_key, on_crash, state, hold, stop, error, parked_on,
        cause, rank, created_at, not_before, deadline, budget_ms, budget_left_ms, budget_until, started_at, finished_at,
        changed_at, attempt, lost, fence, seq, unsafe, tokens, cost_micros)
      SELECT m.run_id, n.id, a.agent_id, s.session_id, nullif(n.parent, ''), nullif(n.key, ''), n.on_crash, n.state,
        nullif(n.hold, 'none'), nullif(n.stop, 'none'), nullif(n.error, ''), nullif(n.parked_on, ''), n.cause,
        from_ms(n.rank_ms) + v_ahead, from_ms(n.created_ms) + v_ahead, from_ms(n.not_before_ms) + v_ahead, from_ms(n.deadline_ms),
        n.budget_ms, n.left_ms,
        CASE WHEN n.state = 'queued' AND n.hold = 'none' THEN by_agents_clock(from_ms(n.until_ms) + v_ahead, a.agent_id, t)
             ELSE from_ms(n.until_ms) + v_ahead END,
        from_ms(n.started_ms) + v_ahead, from_ms(n.finished_ms) + v_ahead, from_ms(n.changed_ms) + v_ahead, n.attempt, n.lost, n.fence,
        n.seq, n.unsafe <> 0, n.tokens, n.cost_micros
      FROM unnest(p_ids, p_agents, p_sessions, p_parents, p_keys, p_on_crash, p_states, p_holds, p_stops, p_errors, p_parked_on,
          p_causes, p_ranks_ms, p_created_ms, p_not_before_ms, p_deadlines_ms, p_budgets_ms, p_left_ms, p_until_ms, p_started_ms,
          p_finished_ms, p_changed_ms, p_attempts, p_lost, p_fences, p_seqs, p_unsafe, p_tokens, p_cost_micros)
        AS n (id, agent, session, parent, key, on_crash, state, hold, stop, error, parked_on, cause, rank_ms, created_ms,
          not_before_ms, deadline_ms, budget_ms, left_ms, until_ms, started_ms, finished_ms, changed_ms, attempt, lost, fence,
          seq, unsafe, tokens, cost_micros)
      JOIN named m ON m.public_id = n.id JOIN agent a ON a.name = n.agent
      LEFT JOIN session s ON s.key = nullif(n.session, '') ORDER BY m.run_id
    RETURNING run_id)
  SELECT count(*), array_agg(run_id) INTO v_added, v_runs FROM added;
  IF v_added = 0 THEN RETURN 0; END IF;
  UPDATE run r SET parent_id = p.run_id FROM run_name p WHERE r.run_id = ANY (v_runs) AND p.public_id = r.parent;
  INSERT INTO run_input (run_id, search, body) SELECT m.run_id, u.search, u.body FROM unnest(p_ids, p_search, p_inputs) u (id, search, body)
    JOIN run_name m ON m.public_id = u.id WHERE u.body <> '' AND m.run_id = ANY (v_runs);
  INSERT INTO run_result (run_id, body) SELECT m.run_id, u.body FROM unnest(p_ids, p_results) u (id, body)
    JOIN run_name m ON m.public_id = u.id WHERE u.body <> '' AND m.run_id = ANY (v_runs);
  PERFORM load_events(v_runs, v_ahead, e_ids, e_seqs, e_fences, e_nodes, e_causes, e_states, e_holds, e_errors, e_data, e_at_ms);
  PERFORM load_output(v_runs, o_ids, o_bytes, o_at, o_bodies);
  PERFORM load_messages(v_runs, m_ids, m_at, m_ends, m_bodies);
  PERFORM load_families(v_runs, f_ids, f_heads, f_tokens, f_cost_micros);
  -- Behind a session that was here already.
  UPDATE run u SET hold = 'session', cause = 'loaded', changed_at = t, seq = u.seq + 1,
      budget_until = later(u.budget_until, CASE WHEN u.hold IS NULL THEN stood(u.agent_id, t) ELSE 0 END)
    WHERE u.run_id = ANY (v_runs) AND u.state = 'queued' AND u.hold IS DISTINCT FROM 'session' AND u.session_id IS NOT NULL
      AND EXISTS (SELECT FROM run h WHERE h.session_id = u.session_id AND h.finished_at IS NULL AND h.run_id < u.run_id);
  SELECT array_agg(DISTINCT session_id) INTO v_sessions FROM run WHERE run_id = ANY (v_runs) AND session_id IS NOT NULL;
  IF v_sessions IS NOT NULL THEN PERFORM promote(v_sessions); END IF;
  RETURN v_added; END $$;
