-- The end of an attempt, and what its owner reports before that.

-- Same as domain::after_settle. Replaces the first version's, which never returns `expired`.
CREATE FUNCTION next_state(p_settle text, p_stop text, p_unsafe boolean, p_on_crash text,
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
    WHEN p_expires_first                                     THEN 'expired'    -- a retry would not fit in time
    ELSE 'queued' END $$;

-- Same as domain::error_of_loss.
CREATE FUNCTION error_of_loss(p_next text, p_times bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE p_next WHEN 'in_doubt' THEN 'the process that carried it was lost: what it did until then is unknown'
    WHEN 'failed' THEN format('the process that carried it was lost %s: the run may be the cause. `stint retry` runs it again',
      CASE p_times WHEN 1 THEN 'once' ELSE p_times || ' times' END) END $$;

-- After the runs: pauses the limits that a park names, and widens the ramps after a success. Locks all limits first.
CREATE FUNCTION settle_limits(p_runs bigint[], p_settles text[], p_park_on text[], p_park_ms bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE v_paused text[]; v_ramped int[]; v_before timestamptz[]; BEGIN
  SELECT array_agg(DISTINCT i.name) INTO v_paused FROM unnest(p_settles, p_park_on) i (settle, name)
    WHERE i.settle = 'park' AND i.name <> '';
  IF v_paused IS NOT NULL THEN PERFORM make_limits(v_paused); END IF;
  IF 'succeeded' = ANY (p_settles) AND EXISTS (SELECT FROM named_limit WHERE ramp IS NOT NULL) THEN
    SELECT array_agg(DISTINCT g.limit_id) INTO v_ramped FROM unnest(p_runs, p_settles) i (run_id, settle)
      JOIN run r USING (run_id) JOIN limit_set_member m USING (set_id) JOIN named_limit g USING (limit_id)
      WHERE i.settle = 'succeeded' AND g.ramp IS NOT NULL;
  END IF;
  IF v_paused IS NULL AND v_ramped IS NULL THEN RETURN; END IF;
  PERFORM FROM named_limit WHERE limit_id = ANY (v_ramped) OR name = ANY (v_paused) ORDER BY limit_id FOR NO KEY UPDATE;
  SELECT array_agg(g.paused_until ORDER BY p.at) INTO v_before FROM unnest(v_paused) WITH ORDINALITY p (name, at) JOIN named_limit g USING (name);
  -- Each success doubles it, up to the capacity or 64; then the ramp ends.
  UPDATE named_limit g SET ramp = CASE WHEN g.ramp * 2 ^ n.times < least(g.capacity, 64) THEN (g.ramp * 2 ^ n.times)::bigint END
    FROM (SELECT m.limit_id, count(*) AS times FROM unnest(p_runs, p_settles) i (run_id, settle)
            JOIN run r USING (run_id) JOIN limit_set_member m USING (set_id) WHERE i.settle = 'succeeded' GROUP BY m.limit_id) n
    WHERE g.limit_id = n.limit_id AND g.limit_id = ANY (v_ramped) AND g.ramp IS NOT NULL;
  UPDATE named_limit g SET paused_until = greatest(g.paused_until, n.until), ramp = 1
    FROM (SELECT i.name, max(coalesce(later(clock(), i.park_ms), 'infinity')) AS until
            FROM unnest(p_settles, p_park_on, p_park_ms) i (settle, name, park_ms)
            WHERE i.settle = 'park' AND i.name <> '' GROUP BY i.name) n
    WHERE g.name = n.name;
  IF v_paused IS NOT NULL THEN
    PERFORM tell_pause(p.name, p.before) FROM unnest(v_paused, v_before) p (name, before);
    PERFORM note_pauses(v_paused);
  END IF; END $$;

-- The same for the settlements at these places.
CREATE FUNCTION settle_limits_at(p_at bigint[], p_runs bigint[], p_settles text[], p_park_on text[], p_park_ms bigint[]) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
  IF 'park' = ANY (p_settles) OR EXISTS (SELECT FROM named_limit WHERE ramp IS NOT NULL) THEN
    PERFORM settle_limits(array_agg(p_runs[i]), array_agg(p_settles[i]), array_agg(p_park_on[i]), array_agg(p_park_ms[i]))
      FROM unnest(p_at) i;
  END IF; END $$;

CREATE FUNCTION hold_after(p_next text, p_settle text, p_until timestamptz) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_next = 'queued' AND p_settle = 'retry' THEN 'backoff'
              WHEN p_next = 'parked' THEN CASE WHEN p_until IS NULL THEN 'person' ELSE 'quota' END END $$;

-- Adds to the families of these runs. Last in a transaction: the holder of a family's lock waits only for other
-- families, in the order of their ids.
CREATE FUNCTION add_use(p_runs bigint[], p_tokens bigint[], p_cost_micros bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v_families bigint[]; BEGIN
  SELECT array_agg(DISTINCT family_id) INTO v_families FROM family_run WHERE run_id = ANY (p_runs);
  IF v_families IS NULL THEN RETURN; END IF;
  PERFORM FROM family WHERE family_id = ANY (v_families) ORDER BY family_id FOR NO KEY UPDATE;
  UPDATE family f SET tokens = f.tokens + n.tokens, cost_micros = f.cost_micros + n.cost
    FROM (SELECT m.family_id, sum(u.tokens)::bigint AS tokens, sum(u.cost)::bigint AS cost
            FROM unnest(p_runs, p_tokens, p_cost_micros) u (run_id, tokens, cost) JOIN family_run m USING (run_id)
            GROUP BY m.family_id) n
    WHERE f.family_id = n.family_id; END $$;

-- Gives the events of the settlements at these places their data: after the trigger has written them, in the same
-- transaction, as in claim().
CREATE FUNCTION keep_data(p_at bigint[], p_runs bigint[], p_data text[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  IF EXISTS (SELECT FROM unnest(p_data) d WHERE d <> '') THEN
    UPDATE event e SET data = p_data[i] FROM unnest(p_at) i JOIN LATERAL (SELECT x.run_id, x.seq FROM run x WHERE x.run_id = p_runs[i] OFFSET 0) r ON true
      WHERE p_data[i] <> '' AND e.run_id = r.run_id AND e.seq = r.seq AND e.xid = pg_current_xact_id();
  END IF; END $$;

-- Ends attempts of any kind and adds up their use. A settlement that is missing in the answer was stale and was
-- rejected. p_tokens and p_cost_micros are NULL for a lost attempt: what it reported stays counted. The settings are
-- those of claim(): each run is looked up by its number, whatever the statistics, and nothing is planned again.
-- p_data: of the events; '': none. NULL: none has data.
CREATE FUNCTION settle(p_node bigint, p_runs bigint[], p_fences bigint[], p_settles text[], p_errors text[], p_results text[],
  p_retry_ms bigint[], p_park_on text[], p_park_ms bigint[], p_tokens bigint[], p_cost_micros bigint[], p_data text[])
RETURNS TABLE (at bigint, state text) LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE v_sessions bigint[]; v_at bigint[]; v_states text[]; v_used bigint[]; v_tokens bigint[]; v_cost bigint[];
  t timestamptz; w timestamptz; BEGIN
  v_sessions := lock_runs(p_runs);
  t := clock(); w := wall();
  -- OFFSET forces lookups one by one: otherwise a plan may compare all runs that the node owns with all that it
  -- settles.
  WITH due AS MATERIALIZED (
    SELECT DISTINCT ON (r.run_id) r.*, i.at, i.settle, i.error, i.result, i.park_on, later(t, i.park_ms) AS until, later(w, i.park_ms) AS wall_until,
           CASE i.settle WHEN 'retry' THEN later(t, i.retry_ms) ELSE t END AS again,
           i.tokens, i.cost, a.attempts_max, a.lost_max
    FROM unnest(p_runs, p_fences, p_settles, p_errors, p_results, p_retry_ms, p_park_on, p_park_ms, p_tokens, p_cost_micros)
      WITH ORDINALITY AS i (run_id, fence, settle, error, result, retry_ms, park_on, park_ms, tokens, cost, at)
      CROSS JOIN LATERAL (SELECT x.run_id, x.agent_id, x.stop, x.unsafe, x.on_crash, x.attempt, x.lost, x.budget_until, x.deadline,
          x.reported_tokens, x.reported_cost_micros, owns(x, p_node, i.fence) AS owned FROM run x WHERE x.run_id = i.run_id OFFSET 0) r
      JOIN agent a USING (agent_id)
    WHERE r.owned ORDER BY r.run_id, i.at),
  decided AS MATERIALIZED (
    SELECT d.run_id, d.lost, d.agent_id, coalesce(d.tokens - d.reported_tokens, 0) AS more_tokens,
      coalesce(d.cost - d.reported_cost_micros, 0) AS more_cost, d.at, d.settle, d.error, d.result, d.park_on, d.until, d.again,
      next_state(d.settle, d.stop, d.unsafe, d.on_crash, d.attempt, d.attempts_max, d.lost, d.lost_max,
        coalesce(time_left(d.deadline, d.budget_until, w, t) <= to_ms(d.again) - to_ms(t), false),
        coalesce(d.settle = 'park' AND d.deadline <= d.wall_until, false)) AS next
    FROM due d),
  ended AS (
    UPDATE run u SET state = n.next, cause = n.settle, changed_at = t,
      error = coalesce(nullif(n.error, ''), CASE n.settle WHEN 'lost' THEN error_of_loss(n.next, n.lost + 1) END,
        CASE WHEN n.next <> 'succeeded' THEN u.error END),
      seq = u.seq + 1, node_id = NULL, tokens = u.tokens + n.more_tokens, cost_micros = u.cost_micros + n.more_cost,
      reported_tokens = 0, reported_cost_micros = 0,
      hold = hold_after(n.next, n.settle, n.until),
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
    INSERT INTO spent AS s (hour, agent_id, node_id, runs, tokens, cost_micros)
      SELECT hour_of(w), n.agent_id, p_node, count(*), sum(n.more_tokens)::bigint, sum(n.more_cost)::bigint
      FROM decided n WHERE n.settle <> 'lost' GROUP BY n.agent_id ORDER BY n.agent_id
      ON CONFLICT (hour, agent_id, node_id) DO UPDATE SET runs = s.runs + excluded.runs,
        tokens = s.tokens + excluded.tokens, cost_micros = s.cost_micros + excluded.cost_micros)
  SELECT array_agg(n.at ORDER BY n.at), array_agg(n.next ORDER BY n.at),
      array_agg(n.run_id ORDER BY n.at) FILTER (WHERE n.more_tokens <> 0 OR n.more_cost <> 0),
      array_agg(n.more_tokens ORDER BY n.at) FILTER (WHERE n.more_tokens <> 0 OR n.more_cost <> 0),
      array_agg(n.more_cost ORDER BY n.at) FILTER (WHERE n.more_tokens <> 0 OR n.more_cost <> 0)
    INTO v_at, v_states, v_used, v_tokens, v_cost FROM decided n;
  IF v_at IS NULL THEN RETURN; END IF;
  PERFORM keep_data(v_at, p_runs, p_data);
  IF v_sessions IS NOT NULL THEN PERFORM promote(v_sessions); END IF;
  PERFORM settle_limits_at(v_at, p_runs, p_settles, p_park_on, p_park_ms); IF v_used IS NOT NULL THEN PERFORM add_use(v_used, v_tokens, v_cost); END IF;
  RETURN QUERY SELECT * FROM unnest(v_at, v_states); END $$;

-- Widens the ramps like a success: settle_limits().
CREATE FUNCTION provider_answered(p_node bigint, p_run bigint, p_fence bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  PERFORM FROM run r WHERE r.run_id = p_run AND owns(r, p_node, p_fence) FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  IF EXISTS (SELECT FROM named_limit WHERE ramp IS NOT NULL) THEN
    PERFORM settle_limits(ARRAY[p_run], '{succeeded}', '{""}', '{NULL}');
  END IF;
  RETURN true; END $$;

-- Records the use of an attempt so far. No row: stale. No event: only the sums have changed.
CREATE FUNCTION report(p_node bigint, p_run bigint, p_fence bigint, p_tokens bigint, p_cost_micros bigint)
RETURNS TABLE (head text, tokens bigint, cost_micros bigint)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE r run; v_tokens bigint; v_micros bigint; BEGIN
  SELECT * INTO r FROM run WHERE run_id = p_run FOR NO KEY UPDATE;
  IF NOT FOUND OR NOT owns(r, p_node, p_fence) THEN RETURN; END IF;
  v_tokens := p_tokens - r.reported_tokens;
  v_micros := p_cost_micros - r.reported_cost_micros;
  IF v_tokens <> 0 OR v_micros <> 0 THEN
    UPDATE run u SET tokens = u.tokens + v_tokens, cost_micros = u.cost_micros + v_micros, reported_tokens = p_tokens,
        reported_cost_micros = p_cost_micros WHERE u.run_id = p_run;
    INSERT INTO spent AS s (hour, agent_id, node_id, runs, tokens, cost_micros)
      VALUES (hour_of(wall()), r.agent_id, p_node, 0, v_tokens, v_micros)
      ON CONFLICT (hour, agent_id, node_id) DO UPDATE SET tokens = s.tokens + excluded.tokens,
        cost_micros = s.cost_micros + excluded.cost_micros;
    PERFORM add_use(ARRAY[p_run], ARRAY[v_tokens], ARRAY[v_micros]);
  END IF;
  RETURN QUERY SELECT f.head, f.tokens, f.cost_micros FROM family_run m JOIN family f USING (family_id) WHERE m.run_id = p_run
    UNION ALL SELECT r.public_id, r.tokens + v_tokens, r.cost_micros + v_micros
      WHERE NOT EXISTS (SELECT FROM family f WHERE f.head = r.public_id); END $$;

-- Before an operation that must not be repeated, and when its outcome is known.
CREATE FUNCTION mark(p_node bigint, p_run bigint, p_fence bigint, p_unsafe boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  UPDATE run r SET unsafe = p_unsafe, cause = CASE WHEN p_unsafe THEN 'unsafe' ELSE 'safe' END, changed_at = clock(), seq = r.seq + 1
    WHERE r.run_id = p_run AND owns(r, p_node, p_fence) AND r.unsafe <> p_unsafe;
  RETURN FOUND OR EXISTS (SELECT FROM run r WHERE r.run_id = p_run AND owns(r, p_node, p_fence)); END $$;

-- A repeated call with the same word does not write again: the answer may have been lost.
CREATE FUNCTION note(p_node bigint, p_run bigint, p_fence bigint, p_word bigint, p_cause text, p_data text) RETURNS boolean
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  WITH u AS (UPDATE run r SET seq = r.seq + 1, cause = 'note', changed_at = clock(), last_word = p_word
    WHERE r.run_id = p_run AND owns(r, p_node, p_fence) AND r.last_word IS DISTINCT FROM p_word RETURNING r.*)
  INSERT INTO event (run_id, seq, fence, node_id, set_id, cause, state, data, at)
    SELECT run_id, seq, fence, node_id, set_id, p_cause, state, p_data, changed_at FROM u;
  RETURN FOUND OR EXISTS (SELECT FROM run r WHERE r.run_id = p_run AND owns(r, p_node, p_fence)); END $$;

-- Keeps the head and the tail of an output, in chunks; deletes chunks that leave the tail.
CREATE FUNCTION append_output(p_node bigint, p_run bigint, p_fence bigint, p_word bigint, p_text bytea, p_head_max bigint,
  p_tail_max bigint)
RETURNS boolean LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_at bigint; v_end bigint; v_head int; v_tail int; BEGIN
  PERFORM FROM run r WHERE r.run_id = p_run AND owns(r, p_node, p_fence) FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  IF length(p_text) = 0 THEN RETURN true; END IF;
  INSERT INTO output AS o (run_id, bytes, last_word) VALUES (p_run, length(p_text), p_word)
    ON CONFLICT (run_id) DO UPDATE SET bytes = o.bytes + excluded.bytes, last_word = p_word
    WHERE o.last_word IS DISTINCT FROM p_word RETURNING bytes INTO v_end;
  IF NOT FOUND THEN RETURN true; END IF;                 -- it exists already
  v_at := v_end - length(p_text);
  v_head := least(greatest(p_head_max - v_at, 0), length(p_text));
  v_tail := least(p_tail_max, length(p_text) - v_head);
  INSERT INTO output_chunk (run_id, at, body)
    SELECT p_run, c.at, c.body FROM (VALUES (v_at, substring(p_text FROM 1 FOR v_head)),
      (v_end - v_tail, substring(p_text FROM length(p_text) - v_tail + 1))) c (at, body) WHERE length(c.body) > 0;
  DELETE FROM output_chunk c WHERE c.run_id = p_run AND c.at >= p_head_max AND c.at + length(c.body) <= v_end - p_tail_max;
  RETURN true; END $$;

-- Returns stale, stored, missing (an earlier message) or long.
CREATE FUNCTION put_message(p_node bigint, p_run bigint, p_fence bigint, p_at bigint, p_body bytea, p_bytes_max bigint,
  p_messages_max bigint)
RETURNS text LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_before bigint := 0; BEGIN
  PERFORM FROM run r WHERE r.run_id = p_run AND owns(r, p_node, p_fence) FOR SHARE;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  IF p_at > 0 THEN
    SELECT ends INTO v_before FROM message WHERE run_id = p_run AND at = p_at - 1;
    IF NOT FOUND THEN RETURN 'missing'; END IF;
  END IF;
  IF v_before + length(p_body) > p_bytes_max OR p_at >= p_messages_max THEN RETURN 'long'; END IF;
  DELETE FROM message WHERE run_id = p_run AND at >= p_at;
  INSERT INTO message (run_id, at, ends, body) VALUES (p_run, p_at, v_before + length(p_body), p_body);
  RETURN 'stored'; END $$;
