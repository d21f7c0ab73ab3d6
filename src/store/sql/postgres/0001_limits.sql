-- Functions that all others use; agents, limits and nodes.

CREATE FUNCTION must_find(p_id text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE v bigint; BEGIN
  SELECT run_id INTO v FROM run_name WHERE public_id = p_id;
  IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = 'ST400', MESSAGE = format('there is no run ''%s''', p_id); END IF;
  RETURN v; END $$;

CREATE FUNCTION lock_sessions(p_sessions bigint[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  PERFORM FROM session WHERE session_id = ANY (p_sessions) ORDER BY session_id FOR NO KEY UPDATE; END $$;

-- Every change of a run's state goes through here, except a claim. Returns the sessions touched, for promote().
CREATE FUNCTION lock_runs(p_runs bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE v bigint[]; BEGIN
  SELECT array_agg(DISTINCT session_id) INTO v FROM run WHERE run_id = ANY (p_runs) AND session_id IS NOT NULL;
  IF v IS NOT NULL THEN PERFORM lock_sessions(v); END IF;
  PERFORM FROM run WHERE run_id = ANY (p_runs) ORDER BY run_id FOR NO KEY UPDATE;
  RETURN v; END $$;

-- The oldest unfinished run of a session is its head, whatever its state; if its hold is `session`, it becomes ready.
CREATE FUNCTION promote(p_sessions bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE t timestamptz := clock(); BEGIN
  UPDATE run u SET hold = CASE WHEN u.not_before > t THEN 'delay' END, cause = 'promoted', changed_at = t, seq = u.seq + 1,
                   not_before = CASE WHEN u.not_before > t THEN u.not_before END,
                   budget_until = CASE WHEN u.not_before > t THEN u.budget_until ELSE by_agents_clock(u.budget_until, u.agent_id, t) END
  FROM unnest(p_sessions) s CROSS JOIN LATERAL (
    SELECT r.run_id FROM run r WHERE r.session_id = s AND r.finished_at IS NULL ORDER BY r.run_id LIMIT 1) h
  WHERE u.run_id = h.run_id AND u.state = 'queued' AND u.hold = 'session'; END $$;

-- Creates and locks sessions: created in the order of their keys and locked in that of their ids, so that two submits
-- never wait for each other. Repeats if one of them was pruned meanwhile.
CREATE FUNCTION open_sessions(p_keys text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v_locked bigint; BEGIN
  LOOP
    INSERT INTO session (key) SELECT k FROM unnest(p_keys) k
      WHERE NOT EXISTS (SELECT FROM session s WHERE s.key = k) ORDER BY k COLLATE "C" ON CONFLICT DO NOTHING;
    SELECT count(*) INTO v_locked FROM (
      SELECT FROM session s WHERE s.key = ANY (p_keys) ORDER BY s.session_id FOR NO KEY UPDATE) x;
    EXIT WHEN v_locked = cardinality(p_keys);
  END LOOP; END $$;

CREATE FUNCTION make_limits(p_names text[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO named_limit (name) SELECT DISTINCT n COLLATE "C" FROM unnest(p_names) n
    WHERE NOT EXISTS (SELECT FROM named_limit g WHERE g.name = n) ORDER BY 1 ON CONFLICT DO NOTHING; END $$;

CREATE FUNCTION held(p_limit int, OUT units bigint, OUT runs bigint) LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(c.n * m.weight), 0)::bigint, coalesce(sum(c.n), 0)::bigint FROM limit_set_member m
    CROSS JOIN LATERAL (SELECT count(*) AS n FROM run r WHERE r.state = 'running' AND r.set_id = m.set_id) c
    WHERE m.limit_id = p_limit $$;

CREATE FUNCTION owns(r run, p_node bigint, p_fence bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT r.state = 'running' AND r.fence = p_fence AND r.node_id = p_node $$;

-- One agent of define(): its limits come as two lists. One definer at a time: `shared` depends on all agents.
CREATE FUNCTION define(p_name text, p_limits text[], p_weights bigint[], p_queued_max bigint, p_attempts_max bigint,
  p_lost_max bigint) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_set int; v_before int; v_limits int[]; v_agent int; BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('stint.define', 0));
  PERFORM make_limits(p_limits);
  SELECT set_id INTO v_before FROM agent WHERE name = p_name;
  v_set := v_before;
  IF v_before IS NULL OR EXISTS (
      SELECT FROM (SELECT g.limit_id, l.weight FROM unnest(p_limits, p_weights) l (name, weight) JOIN named_limit g USING (name)) n
        FULL JOIN (SELECT limit_id, weight FROM limit_set_member WHERE set_id = v_before) o USING (limit_id, weight)
        WHERE n.limit_id IS NULL OR o.limit_id IS NULL) THEN
    INSERT INTO limit_set DEFAULT VALUES RETURNING set_id INTO v_set;
    INSERT INTO limit_set_member (set_id, limit_id, weight)
      SELECT v_set, g.limit_id, l.weight FROM unnest(p_limits, p_weights) l (name, weight) JOIN named_limit g USING (name);
  END IF;
  INSERT INTO agent AS a (name, set_id, queued_max, attempts_max, lost_max)
    VALUES (p_name, v_set, p_queued_max, p_attempts_max, p_lost_max)
    ON CONFLICT (name) DO UPDATE SET set_id = excluded.set_id, queued_max = excluded.queued_max,
      attempts_max = excluded.attempts_max, lost_max = excluded.lost_max
    RETURNING a.agent_id INTO v_agent;
  INSERT INTO standstill (agent_id) VALUES (v_agent) ON CONFLICT DO NOTHING;
  IF v_set IS NOT DISTINCT FROM v_before THEN RETURN; END IF;
  SELECT array_agg(DISTINCT limit_id) INTO v_limits FROM limit_set_member WHERE set_id IN (v_set, v_before);
  PERFORM FROM named_limit WHERE limit_id = ANY (v_limits) ORDER BY limit_id FOR NO KEY UPDATE;
  UPDATE named_limit g SET shared = n.many FROM (
    SELECT m.limit_id, count(*) > 1 AS many FROM limit_set_member m JOIN agent USING (set_id) GROUP BY m.limit_id) n
    WHERE n.limit_id = g.limit_id AND g.limit_id = ANY (v_limits) AND g.shared <> n.many;
  PERFORM note_pauses(ARRAY[v_agent]); END $$;

-- Like Ledger::configure. One configuration at a time and no definition beside it: the result depends on which agents
-- use a limit.
CREATE FUNCTION configure(p_limits text[], p_capacities bigint[], p_agents text[]) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('stint.define', 0));
  PERFORM make_limits(p_limits);
  WITH said AS (
    SELECT g.limit_id, g.name, g.capacity AS before, l.capacity FROM named_limit g
      LEFT JOIN unnest(p_limits, p_capacities) l (name, capacity) USING (name)
      WHERE g.configured IS DISTINCT FROM l.capacity AND (l.capacity IS NOT NULL OR (p_agents <> '{}' AND NOT EXISTS (
        SELECT FROM limit_set_member m JOIN agent a USING (set_id) WHERE m.limit_id = g.limit_id AND a.name <> ALL (p_agents))))
      ORDER BY g.limit_id FOR NO KEY UPDATE OF g),
  sized AS (UPDATE named_limit g SET configured = s.capacity, capacity = s.capacity FROM said s WHERE g.limit_id = s.limit_id)
  INSERT INTO event (seq, fence, cause, data, at)
    SELECT 0, 0, 'resized', format('{"limit":%s,"capacity":%s}', to_json(s.name), coalesce(s.capacity::text, 'null')), clock()
    FROM said s WHERE s.before IS DISTINCT FROM s.capacity ORDER BY s.limit_id; END $$;

CREATE FUNCTION resize(p_limit text, p_capacity bigint) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  PERFORM make_limits(ARRAY[p_limit]);
  UPDATE named_limit SET capacity = p_capacity WHERE name = p_limit AND capacity IS DISTINCT FROM p_capacity;
  IF NOT FOUND THEN RETURN; END IF;
  INSERT INTO event (seq, fence, cause, data, at) VALUES (0, 0, 'resized',
    format('{"limit":%s,"capacity":%s}', to_json(p_limit), coalesce(p_capacity::text, 'null')), clock()); END $$;

-- An event of the fleet (domain/fleet_event.hpp), of a node or of none.
CREATE FUNCTION add_fleet_event(p_cause text, p_data text, p_node bigint) RETURNS void LANGUAGE sql AS $$
  INSERT INTO stint.event (seq, fence, node_id, cause, data, at) VALUES (0, 0, p_node, p_cause, p_data, stint_v1.clock()) $$;

-- After a pause: the limit admits nothing for so long. Nothing, if it was paused as long before.
CREATE FUNCTION tell_pause(p_limit text, p_before timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v_until timestamptz; t timestamptz := clock(); BEGIN
  SELECT paused_until INTO v_until FROM named_limit WHERE name = p_limit;
  IF p_before > t AND v_until = p_before THEN RETURN; END IF;
  PERFORM add_fleet_event('paused', format('{"limit":%s,"for_ms":%s}', to_json(p_limit), coalesce((to_ms(v_until) - to_ms(t))::text, 'null')), NULL); END $$;

-- Only an account is probed after a pause: domain::is_probed.
CREATE FUNCTION pause(p_limit text, p_length_ms bigint) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_before timestamptz; BEGIN
  PERFORM make_limits(ARRAY[p_limit]);
  SELECT paused_until INTO v_before FROM named_limit WHERE name = p_limit FOR NO KEY UPDATE;
  UPDATE named_limit SET paused_until = greatest(paused_until, coalesce(later(clock(), p_length_ms), 'infinity')),
      ramp = CASE WHEN p_limit LIKE 'account:%' THEN 1 ELSE ramp END
    WHERE name = p_limit;
  PERFORM tell_pause(p_limit, v_before);
  PERFORM note_pauses(ARRAY[p_limit]); END $$;

-- Runs parked on it keep their rank; the first to be claimed is the probe.
CREATE FUNCTION resume(p_limit text) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE t timestamptz := clock(); v_woken bigint; v_before timestamptz; BEGIN
  UPDATE run u SET state = 'queued', hold = NULL, not_before = NULL, parked_on = NULL, cause = 'limit_resumed', changed_at = t,
         seq = u.seq + 1, budget_until = by_agents_clock(later(t, u.budget_left_ms), u.agent_id, t), budget_left_ms = NULL
  FROM (SELECT run_id FROM run WHERE parked_on = p_limit AND state = 'parked' ORDER BY run_id FOR NO KEY UPDATE) l
  WHERE u.run_id = l.run_id;
  GET DIAGNOSTICS v_woken = ROW_COUNT;
  PERFORM make_limits(ARRAY[p_limit]);
  SELECT paused_until INTO v_before FROM named_limit WHERE name = p_limit FOR NO KEY UPDATE;
  UPDATE named_limit SET paused_until = NULL WHERE name = p_limit;
  PERFORM note_pauses(ARRAY[p_limit]);
  IF v_before > t OR v_woken > 0 THEN
    PERFORM add_fleet_event('resumed', format('{"limit":%s,"woken":%s}', to_json(p_limit), v_woken), NULL);
  END IF;
  RETURN v_woken; END $$;

CREATE FUNCTION node_data(p_label text, p_lost bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT format('{"label":%s,"lost":%s}', to_json(p_label), p_lost) $$;

-- The feed does not announce a node that carries only its own run: it comes and goes with each `stint run`.
CREATE FUNCTION enrol(p_label text, p_lease_ms bigint, p_one_run boolean) RETURNS bigint
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_node bigint; BEGIN
  INSERT INTO node (label, lease_until, beaten_at, one_run)
    SELECT p_label, later(w, p_lease_ms), w, p_one_run FROM wall() w RETURNING node_id INTO v_node;
  IF NOT p_one_run THEN PERFORM add_fleet_event('node_joined', node_data(p_label, 0), v_node); END IF;
  RETURN v_node; END $$;

CREATE FUNCTION beat(p_node bigint, p_lease_ms bigint) RETURNS TABLE (alive boolean, run_id bigint, fence bigint, stop text)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_alive boolean; t timestamptz := wall(); BEGIN
  UPDATE node w SET lease_until = later(t, p_lease_ms), beaten_at = t WHERE w.node_id = p_node AND w.state <> 'dead';
  v_alive := FOUND;
  RETURN QUERY SELECT v_alive, r.run_id, r.fence, r.stop FROM (VALUES (1)) one
    LEFT JOIN run r ON r.node_id = p_node AND r.state = 'running' AND r.stop IS NOT NULL ORDER BY r.run_id; END $$;

CREATE FUNCTION drain(p_node bigint) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_one_run boolean; BEGIN
  UPDATE node SET state = 'draining' WHERE node_id = p_node AND state = 'live' RETURNING one_run INTO v_one_run;
  IF NOT v_one_run THEN PERFORM add_fleet_event('draining', '{"phase":"finishing"}', p_node); END IF; END $$;

-- For update: no claim is under way.
CREATE FUNCTION leave(p_node bigint) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_label text; v_one_run boolean; BEGIN
  SELECT label, one_run INTO v_label, v_one_run FROM node WHERE node_id = p_node AND state <> 'dead' FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF EXISTS (SELECT FROM run WHERE node_id = p_node AND state = 'running') THEN
    RAISE EXCEPTION USING ERRCODE = 'ST409', MESSAGE = 'the node still owns runs';
  END IF;
  UPDATE node SET state = 'dead' WHERE node_id = p_node;
  IF NOT v_one_run THEN PERFORM add_fleet_event('node_left', node_data(v_label, 0), p_node); END IF; END $$;

CREATE FUNCTION nodes() RETURNS TABLE (node bigint, label text, state text, ago_ms bigint, runs bigint, one_run boolean)
LANGUAGE sql VOLATILE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT w.node_id, w.label, w.state, greatest(to_ms(wall()) - to_ms(w.beaten_at), 0),
      (SELECT count(*) FROM run r WHERE r.node_id = w.node_id AND r.state = 'running'), w.one_run
    FROM node w WHERE w.state <> 'dead' ORDER BY w.node_id $$;
