-- Submit.

-- Deadlines as moments of the database's clock, from moments and from lengths: the earlier one applies.
CREATE FUNCTION deadlines(p_moments_ms bigint[], p_lengths_ms bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
DECLARE v_now bigint := to_ms(wall()); BEGIN
  RETURN ARRAY(SELECT least(d.moment, v_now + d.length) FROM unnest(p_moments_ms, p_lengths_ms)
    WITH ORDINALITY AS d (moment, length, at) ORDER BY d.at); END $$;

-- How many more runs may be queued. Concurrent submits may exceed the bound by their number: an exact bound would
-- make all submits of an agent wait for each other. Its cost is the bound.
CREATE FUNCTION room(a agent) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT a.queued_max - count(*) FROM (
    (SELECT FROM run WHERE agent_id = a.agent_id AND state = 'queued' AND hold IS NULL LIMIT a.queued_max)
    UNION ALL
    (SELECT FROM run WHERE agent_id = a.agent_id AND state = 'queued' AND hold IS NOT NULL LIMIT a.queued_max)) q $$;

-- The common case in one statement: runs without session, parent and key, all of them new, and room for all. False:
-- nothing was done, and the caller must handle them one by one.
CREATE FUNCTION enqueue_all(p_ids text[], p_agents text[], p_priorities int[], p_delays_ms bigint[], p_deadlines_ms bigint[],
  p_budgets_ms bigint[], p_on_crash text[], p_inputs text[], p_search text[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE v_runs bigint[]; t timestamptz; BEGIN
  PERFORM FROM (SELECT u.agent, count(*) AS n FROM unnest(p_agents) u (agent) GROUP BY u.agent) w
    LEFT JOIN agent a ON a.name = w.agent WHERE a.agent_id IS NULL OR room(a) < w.n;
  IF FOUND THEN RETURN false; END IF;
  WITH named AS (
    INSERT INTO run_name (public_id) SELECT u.id FROM unnest(p_ids) WITH ORDINALITY u (id, at) ORDER BY u.at
      ON CONFLICT DO NOTHING RETURNING run_id)
  SELECT array_agg(run_id ORDER BY run_id) INTO v_runs FROM named;
  IF cardinality(v_runs) IS DISTINCT FROM cardinality(p_ids) THEN
    DELETE FROM run_name WHERE public_id = ANY (p_ids) AND run_id = ANY (v_runs);
    RETURN false;
  END IF;
  t := clock();
  INSERT INTO run (run_id, public_id, agent_id, on_crash, state, hold, cause, changed_at, rank, created_at, not_before,
                   deadline, budget_ms)
    SELECT u.run_id, u.id, a.agent_id, u.on_crash, 'queued', CASE WHEN u.delay_ms > 0 THEN 'delay' END, 'enqueued', t,
           later(t, u.delay_ms) - u.priority * interval '10 minutes', t, CASE WHEN u.delay_ms > 0 THEN later(t, u.delay_ms) END,
           from_ms(u.deadline_ms), u.budget_ms
    FROM unnest(v_runs, p_ids, p_agents, p_priorities, p_delays_ms, p_deadlines_ms, p_budgets_ms, p_on_crash)
      AS u (run_id, id, agent, priority, delay_ms, deadline_ms, budget_ms, on_crash) JOIN agent a ON a.name = u.agent
    ORDER BY u.run_id;
  INSERT INTO run_input (run_id, search, body)
    SELECT * FROM unnest(v_runs, p_search, p_inputs) u (run_id, search, body) WHERE u.body <> '';
  RETURN true; END $$;

-- The run that holds the session and is an ancestor of a child of p_parent; NULL: none. The child and it would wait
-- for each other. An ended run holds nothing and waits for no descendant: the search ends there.
CREATE FUNCTION holder_above(p_parent bigint, p_session bigint) RETURNS text LANGUAGE sql STABLE AS $$
  WITH RECURSIVE above AS (
    SELECT r.run_id, r.parent_id, r.session_id, r.public_id FROM run r WHERE r.run_id = p_parent AND r.finished_at IS NULL
    UNION SELECT r.run_id, r.parent_id, r.session_id, r.public_id FROM above a JOIN run r ON r.run_id = a.parent_id
      WHERE r.finished_at IS NULL)
  SELECT public_id FROM above WHERE session_id = p_session LIMIT 1 $$;

-- The run that has this id, or this key of the agent; NULL: it is new.
CREATE FUNCTION known_run(p_id text, p_agent int, p_key text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT n.public_id FROM run_name n WHERE n.public_id = p_id),
                  (SELECT r.public_id FROM run r WHERE p_key <> '' AND r.agent_id = p_agent AND r.idem_key = p_key)) $$;

CREATE FUNCTION running_parent(p_parent text) RETURNS run LANGUAGE sql STABLE AS $$
  SELECT r.* FROM run_name p JOIN run r USING (run_id)
    WHERE p.public_id = p_parent AND r.state = 'running' AND r.stop IS NULL $$;

-- Why this run (NULL: it does not run) can have no child in the session; both are NULL if it can.
CREATE FUNCTION refusal_of_child(p_run bigint, p_parent text, p_session bigint, p_session_key text, OUT error text, OUT message text)
LANGUAGE plpgsql STABLE AS $$
DECLARE v_holder text; BEGIN
  IF p_run IS NULL THEN
    error := 'ST409'; message := format('its parent ''%s'' does not run', p_parent);
  ELSIF p_session IS NOT NULL THEN
    v_holder := holder_above(p_run, p_session);
    IF v_holder IS NOT NULL THEN                       -- store/errors.cpp has the same text
      error := 'ST400'; message := format('session ''%s'' is held by run ''%s'', which is above this one: each would wait for the '
        'other. Use another session', p_session_key, v_holder);
    END IF;
  END IF; END $$;

-- One answer per run, in order; a NULL `error` is success. Locks the sessions and parents of all runs before it
-- writes the first. The share lock on a parent orders its children against its end and its cancel.
CREATE FUNCTION enqueue(p_ids text[], p_agents text[], p_sessions text[], p_parents text[], p_keys text[], p_priorities int[],
  p_delays_ms bigint[], p_deadlines_ms bigint[], p_budgets_ms bigint[], p_on_crash text[], p_inputs text[], p_search text[])
RETURNS TABLE (id text, created boolean, error text, message text)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE n record; a agent; v_parent run; v_session bigint; v_behind boolean; v_run bigint; v_keys text[];
  v_room jsonb := '{}'; t timestamptz; BEGIN             -- the room of each agent is counted once
  IF '' = ALL (p_sessions || p_parents || p_keys) AND
      enqueue_all(p_ids, p_agents, p_priorities, p_delays_ms, p_deadlines_ms, p_budgets_ms, p_on_crash, p_inputs, p_search) THEN
    RETURN QUERY SELECT u.id, true, NULL::text, NULL::text FROM unnest(p_ids) u (id);
    RETURN;
  END IF;
  SELECT array_agg(DISTINCT s) INTO v_keys FROM unnest(p_sessions) s WHERE s <> '';
  IF v_keys IS NOT NULL THEN PERFORM open_sessions(v_keys); END IF;
  PERFORM FROM run WHERE run_id IN (SELECT run_id FROM run_name WHERE public_id = ANY (p_parents)) ORDER BY run_id FOR SHARE;
  t := clock();
  FOR n IN SELECT * FROM unnest(p_ids, p_agents, p_sessions, p_parents, p_keys, p_priorities, p_delays_ms, p_deadlines_ms,
        p_budgets_ms, p_on_crash, p_inputs, p_search)
      WITH ORDINALITY AS u (id, agent, session, parent, key, priority, delay_ms, deadline_ms, budget_ms, on_crash, input, search, at)
      ORDER BY u.at LOOP
    created := false; error := NULL; message := NULL; v_parent := NULL; v_session := NULL; v_behind := false;
    SELECT * INTO a FROM agent WHERE name = n.agent;
    IF NOT FOUND THEN
      error := 'ST400'; message := format('there is no agent ''%s''', n.agent); RETURN NEXT; CONTINUE;
    END IF;
    id := known_run(n.id, a.agent_id, n.key);
    IF id IS NOT NULL THEN RETURN NEXT; CONTINUE; END IF;
    id := n.id;
    IF NOT v_room ? n.agent THEN v_room := v_room || jsonb_build_object(n.agent, room(a)); END IF;
    IF (v_room ->> n.agent)::bigint < 1 THEN
      error := 'ST503'; message := format('the queue of ''%s'' is full', n.agent); RETURN NEXT; CONTINUE;
    END IF;
    IF n.session <> '' THEN
      SELECT session_id INTO v_session FROM session WHERE key = n.session;
      v_behind := EXISTS (SELECT FROM run WHERE session_id = v_session AND finished_at IS NULL);
    END IF;
    IF n.parent <> '' THEN
      v_parent := running_parent(n.parent);
      SELECT * INTO error, message FROM refusal_of_child(v_parent.run_id, n.parent, v_session, n.session);
      IF error IS NOT NULL THEN RETURN NEXT; CONTINUE; END IF;
    END IF;
    INSERT INTO run_name (public_id) VALUES (n.id) ON CONFLICT DO NOTHING RETURNING run_id INTO v_run;
    IF NOT FOUND THEN RETURN NEXT; CONTINUE; END IF;     -- the same run was committed by another submit
    INSERT INTO run (run_id, public_id, agent_id, session_id, parent_id, parent, idem_key, on_crash, state, hold, cause,
                     changed_at, rank, created_at, not_before, deadline, budget_ms, budget_until)
      VALUES (v_run, n.id, a.agent_id, v_session, v_parent.run_id, nullif(n.parent, ''), nullif(n.key, ''), n.on_crash, 'queued',
              CASE WHEN v_behind THEN 'session' WHEN n.delay_ms > 0 THEN 'delay' END, 'enqueued', t,
              later(t, n.delay_ms) - n.priority * interval '10 minutes', t,
              CASE WHEN n.delay_ms > 0 THEN later(t, n.delay_ms) END, least(from_ms(n.deadline_ms), v_parent.deadline), n.budget_ms,
              CASE WHEN v_behind OR n.delay_ms > 0 THEN v_parent.budget_until
                   ELSE by_agents_clock(v_parent.budget_until, a.agent_id, t) END)
      ON CONFLICT DO NOTHING;
    IF FOUND THEN
      created := true;
      v_room := v_room || jsonb_build_object(n.agent, (v_room ->> n.agent)::bigint - 1);
      IF n.input <> '' THEN INSERT INTO run_input (run_id, search, body) VALUES (v_run, n.search, n.input); END IF;
    ELSE                                                 -- a run with the same key
      DELETE FROM run_name WHERE public_id = n.id;
      SELECT public_id INTO id FROM run WHERE agent_id = a.agent_id AND idem_key = n.key;
    END IF;
    RETURN NEXT;
  END LOOP; END $$;

-- A child of the head starts a family and holds a share lock on the head, so the head's use cannot change meanwhile. A head that is
-- not a run is a shared budget, of which nothing was used before. The parent of a run belongs to all families of runs that the run joins, so
-- none of them is deleted now.
CREATE FUNCTION join_families(p_run bigint, p_heads text[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  WITH made AS (
    INSERT INTO family (head, tokens, cost_micros) SELECT h.head, coalesce(r.tokens, 0), coalesce(r.cost_micros, 0)
      FROM unnest(p_heads) h (head) LEFT JOIN run_name n ON n.public_id = h.head LEFT JOIN run r USING (run_id)
      ORDER BY h.head ON CONFLICT DO NOTHING
      RETURNING family_id, head)
  INSERT INTO family_run (run_id, family_id) SELECT n.run_id, m.family_id FROM made m JOIN run_name n ON n.public_id = m.head;
  INSERT INTO family_run (run_id, family_id) SELECT p_run, f.family_id FROM family f WHERE f.head = ANY (p_heads)
    ON CONFLICT DO NOTHING; END $$;

-- The same if some runs are kept, or draw on the budgets of others: p_draws_on contains their ids, separated by
-- spaces. The runs become visible only with both.
CREATE FUNCTION enqueue(p_ids text[], p_agents text[], p_sessions text[], p_parents text[], p_keys text[], p_priorities int[],
  p_delays_ms bigint[], p_deadlines_ms bigint[], p_budgets_ms bigint[], p_on_crash text[], p_inputs text[], p_search text[],
  p_kept_for bigint[], p_draws_on text[])
RETURNS TABLE (id text, created boolean, error text, message text)
LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$
#variable_conflict use_column
DECLARE v_for bigint; v_draws_on text; BEGIN
  FOR id, created, error, message, v_for, v_draws_on IN SELECT * FROM ROWS FROM (stint_v1.enqueue(p_ids, p_agents, p_sessions,
      p_parents, p_keys, p_priorities, p_delays_ms, p_deadlines_ms, p_budgets_ms, p_on_crash, p_inputs, p_search), unnest(p_kept_for),
      unnest(p_draws_on)) LOOP
    IF created AND v_for IS NOT NULL THEN
      UPDATE run r SET kept_for = v_for FROM run_name n WHERE n.public_id = enqueue.id AND r.run_id = n.run_id;
    END IF;
    IF created AND v_draws_on <> '' THEN
      PERFORM join_families(n.run_id, string_to_array(v_draws_on, ' ')) FROM run_name n WHERE n.public_id = enqueue.id;
    END IF;
    RETURN NEXT;
  END LOOP; END $$;

-- Wakes waiting nodes. A commit that notifies waits for all other notifying commits of the database, so only one at a
-- time does; a poll finds what another commits just after that.
CREATE FUNCTION announce() RETURNS void LANGUAGE plpgsql SET search_path = stint_v1, stint, pg_temp AS $$ BEGIN
  IF pg_try_advisory_xact_lock(hashtextextended('stint.announce', 0)) THEN PERFORM pg_notify('stint', ''); END IF; END $$;
