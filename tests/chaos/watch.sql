-- Violations at any moment: an exceeded limit, or two running runs of a session. Repeated by a connection that does
-- not use the store's functions.
SELECT format('%s of %s %s', sum(m.weight), g.capacity, g.name)
  FROM stint.run r JOIN stint.limit_set_member m USING (set_id) JOIN stint.named_limit g USING (limit_id)
  WHERE r.state = 'running' GROUP BY g.limit_id HAVING sum(m.weight) > g.capacity
UNION ALL
SELECT format('%s runs of session %s at once', count(*), r.session_id)
  FROM stint.run r WHERE r.state = 'running' AND r.session_id IS NOT NULL GROUP BY r.session_id HAVING count(*) > 1
\watch 0.02
