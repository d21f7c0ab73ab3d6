-- A program of the version before neither reads nor writes what is new here.

-- What attempts used: of a run in its row, of an agent by day.
ALTER TABLE run ADD COLUMN tokens INT NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN money_micros INT NOT NULL DEFAULT 0;

CREATE TABLE spent (
  day TEXT NOT NULL, agent_id INT NOT NULL, runs INT NOT NULL, tokens INT NOT NULL, money_micros INT NOT NULL,
  PRIMARY KEY (day, agent_id)) STRICT, WITHOUT ROWID;  -- the day in UTC

-- The worker that submitted it and carries it itself: while that lives, no other claims it. Nearly always NULL. In the
-- index, so that what anyone may claim is counted from that alone.
ALTER TABLE run ADD COLUMN kept_for INT;
DROP INDEX run_ready;
CREATE INDEX run_ready ON run (agent_id, rank, run_id, kept_for) WHERE state = 'queued' AND hold IS NULL;

-- The capacity that a configuration gave the limit last: so a resize by hand outlives a restart, and what the
-- configuration does not name any more can be taken back.
ALTER TABLE gate ADD COLUMN configured INT;

-- For lists, runs in doubt share an index with the parked: each index more is opened by each change of a run.
DROP INDEX run_parked;
CREATE INDEX run_parked ON run (state, parked_on) WHERE state = 'parked' OR state = 'in_doubt';

-- What the running attempt has reported of its use; run.tokens and run.money_micros include it.
ALTER TABLE run ADD COLUMN reported_tokens INT NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN reported_micros INT NOT NULL DEFAULT 0;

-- What a run and all that draw on its budget have used together. Kept until the last of them is forgotten; the head is one
-- of them. Few runs have any.
CREATE TABLE family (
  family_id INTEGER PRIMARY KEY AUTOINCREMENT, head TEXT UNIQUE NOT NULL, tokens INT NOT NULL, money_micros INT NOT NULL) STRICT;
CREATE TABLE family_run (run_id INT NOT NULL, family_id INT NOT NULL, PRIMARY KEY (run_id, family_id)) STRICT, WITHOUT ROWID;
CREATE INDEX family_run_by_family ON family_run (family_id);

-- A key is looked for with and without its agent.
DROP INDEX run_idem;
CREATE UNIQUE INDEX run_idem ON run (idem_key, agent_id) WHERE idem_key IS NOT NULL;
