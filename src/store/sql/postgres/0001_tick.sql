-- Actions of a person on a run, and what is due.

-- Ends waiting runs, and asks the owners of running ones to stop.
CREATE FUNCTION stop(p_runs bigint[], p_stop text, p_now timestamptz) RETURNS TABLE (run_id bigint, id text, state text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY UPDATE run u SET stop = p_stop, seq = u.seq + 1, changed_at = p_now, hold = NULL, not_before = NULL, parked_on = NULL,
      state = CASE u.state WHEN 'running' THEN 'running' ELSE p_stop END,
      cause = CASE u.state WHEN 'running' THEN 'cancel_asked' ELSE p_stop END,
      finished_at = CASE WHEN u.state <> 'running' THEN p_now END
    WHERE u.run_id = ANY (p_runs) AND u.state IN ('queued', 'running', 'parked') AND u.stop IS NULL
      AND (p_stop <> 'expired' OR is_over(u, wall(), p_now))
    RETURNING u.run_id, u.public_id, u.state; END $$;

-- The whole tree, also through runs that ended. The caller repeats it until it returns nothing: a child that was
-- submitted meanwhile is found by the second call, and a parent that is being cancelled accepts no more.
CREATE FUNCTION cancel(p_id text) RETURNS TABLE (id text, state text)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_root bigint := must_find(p_id); v_runs bigint[]; v_sessions bigint[]; BEGIN
  WITH RECURSIVE tree AS (SELECT v_root AS run_id UNION SELECT r.run_id FROM tree JOIN run r ON r.parent_id = tree.run_id)
  SELECT array_agg(r.run_id) INTO v_runs FROM tree JOIN run r USING (run_id)
    WHERE r.state IN ('queued', 'running', 'parked') AND r.stop IS NULL;
  IF v_runs IS NULL THEN RETURN; END IF;
  v_sessions := lock_runs(v_runs);
  RETURN QUERY SELECT s.id, s.state FROM stop(v_runs, 'cancelled', clock()) s ORDER BY s.run_id;
  IF v_sessions IS NOT NULL THEN PERFORM promote(v_sessions); END IF; END $$;

CREATE FUNCTION resolve(p_id text, p_how text, p_state text) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_run bigint := must_find(p_id); v_sessions bigint[]; v_state text; t timestamptz; BEGIN
  v_sessions := lock_runs(ARRAY[v_run]);
  SELECT state INTO v_state FROM run WHERE run_id = v_run;
  IF v_state <> 'in_doubt' THEN
    RAISE EXCEPTION USING ERRCODE = 'ST409', MESSAGE = format('''%s'' is %s, not in doubt', p_id, v_state);
  END IF;
  t := clock();
  UPDATE run SET state = p_state, finished_at = CASE WHEN p_how <> 'rerun' THEN t END, unsafe = false,
      error = CASE WHEN p_state <> 'succeeded' THEN error END,
      cause = 'resolved_' || p_how, changed_at = t, stop = CASE WHEN p_how <> 'rerun' THEN stop END, budget_until = NULL, seq = seq + 1
    WHERE run_id = v_run;
  IF v_sessions IS NOT NULL THEN PERFORM promote(v_sessions); END IF; END $$;

CREATE FUNCTION answer(p_id text) RETURNS void
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_run bigint := must_find(p_id); v_state text; t timestamptz; BEGIN
  SELECT state INTO v_state FROM run WHERE run_id = v_run FOR NO KEY UPDATE;
  IF v_state IS DISTINCT FROM 'parked' THEN
    RAISE EXCEPTION USING ERRCODE = 'ST409', MESSAGE = format('''%s'' is %s, not parked', p_id, v_state);
  END IF;
  t := clock();
  UPDATE run SET state = 'queued', hold = NULL, not_before = NULL, parked_on = NULL, cause = 'answered', changed_at = t, seq = seq + 1,
      budget_until = by_agents_clock(later(t, budget_left_ms), agent_id, t), budget_left_ms = NULL WHERE run_id = v_run; END $$;

CREATE FUNCTION wake(p_most bigint) RETURNS bigint LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE t timestamptz := clock(); v_woken bigint; BEGIN
  UPDATE run u SET state = 'queued', hold = NULL, not_before = NULL, parked_on = NULL, cause = 'woken', changed_at = t, seq = u.seq + 1,
         budget_until = by_agents_clock(coalesce(later(t, u.budget_left_ms), u.budget_until), u.agent_id, t), budget_left_ms = NULL
  FROM (SELECT run_id FROM run WHERE not_before <= t AND not_before IS NOT NULL AND hold <> 'session'
        ORDER BY not_before LIMIT p_most FOR NO KEY UPDATE SKIP LOCKED) d WHERE u.run_id = d.run_id;
  GET DIAGNOSTICS v_woken = ROW_COUNT;
  RETURN v_woken; END $$;

-- The agents that have ready runs with a budget that has begun: the earliest end by the agent's clock, and that clock
-- now.
CREATE FUNCTION ready_budgets(p_now timestamptz) RETURNS TABLE (agent_id int, first timestamptz, drawn timestamptz)
LANGUAGE sql STABLE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT x.agent_id, x.first, later(p_now, -stood(x.agent_id, p_now)) FROM (
    SELECT r.agent_id, min(r.budget_until) AS first FROM run r
    WHERE r.state = 'queued' AND r.hold IS NULL AND r.budget_until IS NOT NULL GROUP BY r.agent_id) x $$;

CREATE FUNCTION expire(p_most bigint) RETURNS bigint LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE t timestamptz := clock(); v_runs bigint[]; v_sessions bigint[]; v_expired bigint; BEGIN
  SELECT array_agg(run_id) INTO v_runs FROM (
    (SELECT run_id FROM run WHERE deadline <= wall() AND deadline IS NOT NULL AND state IN ('queued', 'running', 'parked') AND stop IS NULL
      ORDER BY deadline LIMIT p_most)
    UNION
    (SELECT run_id FROM run WHERE budget_until <= t AND budget_until IS NOT NULL AND stop IS NULL
      AND (state IN ('running', 'parked') OR state = 'queued' AND hold IS NOT NULL) ORDER BY budget_until LIMIT p_most)
    UNION
    (SELECT r.run_id FROM ready_budgets(t) b JOIN run r ON r.agent_id = b.agent_id AND r.state = 'queued' AND r.hold IS NULL
      AND r.budget_until IS NOT NULL AND r.budget_until <= b.drawn WHERE b.first <= b.drawn LIMIT p_most)) x;
  IF v_runs IS NULL THEN RETURN 0; END IF;
  v_sessions := lock_runs(v_runs);
  SELECT count(*) INTO v_expired FROM stop(v_runs, 'expired', clock());
  IF v_sessions IS NOT NULL THEN PERFORM promote(v_sessions); END IF;
  RETURN v_expired; END $$;

-- One dead node, or no row: two would take the locks of their sessions out of order. A lease that ends later than any
-- lease can was given before the clock was set back.
CREATE FUNCTION declare_dead(p_far_ms bigint) RETURNS TABLE (node bigint, lost bigint)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_runs bigint[]; v_fences bigint[]; v_none text[]; v_nothing bigint[]; v_label text; BEGIN
  SELECT node_id, label INTO node, v_label FROM node
    WHERE state <> 'dead' AND (lease_until < wall() OR lease_until > later(wall(), p_far_ms))
    ORDER BY lease_until, node_id LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE node w SET state = 'dead' WHERE w.node_id = declare_dead.node;
  SELECT coalesce(array_agg(run_id), '{}'), array_agg(fence) INTO v_runs, v_fences
    FROM run r WHERE r.node_id = declare_dead.node AND r.state = 'running';
  v_none := array_fill(''::text, ARRAY[cardinality(v_runs)]);
  v_nothing := array_fill(NULL::bigint, ARRAY[cardinality(v_runs)]);
  SELECT count(*) INTO lost FROM settle(node, v_runs, v_fences, array_fill('lost'::text, ARRAY[cardinality(v_runs)]), v_none, v_none,
    array_fill(0::bigint, ARRAY[cardinality(v_runs)]), v_none, v_nothing, v_nothing, v_nothing, NULL);
  PERFORM add_fleet_event('node_dead', node_data(v_label, lost), node);
  RETURN NEXT; END $$;

-- How long until the next due moment.
CREATE FUNCTION next_due() RETURNS bigint LANGUAGE sql VOLATILE SET search_path = stint_v1, stint, pg_temp AS $$
  SELECT least(
    (SELECT to_ms(min(not_before)) FROM run WHERE not_before IS NOT NULL AND hold <> 'session') - to_ms(t),
    (SELECT to_ms(min(deadline)) FROM run WHERE deadline IS NOT NULL AND stop IS NULL AND state IN ('queued', 'running', 'parked')) - to_ms(wall()),
    (SELECT to_ms(min(budget_until)) FROM run WHERE budget_until IS NOT NULL AND stop IS NULL
      AND (state IN ('running', 'parked') OR state = 'queued' AND hold IS NOT NULL)) - to_ms(t),
    (SELECT min(to_ms(b.first) - to_ms(b.drawn) + CASE WHEN s.until > t THEN to_ms(s.until) - to_ms(t) ELSE 0 END)
      FROM ready_budgets(t) b JOIN standstill s USING (agent_id)))
  FROM clock() t $$;
