-- The rules of the settings, with their states.
create table alert (
  name text primary key,
  place integer not null,
  figure text,
  meaning text,
  value real,
  now text,
  is_on integer not null default 0,
  since integer not null default 0,
  -- How long the figure has said the contrary of the state.
  contrary_ms integer not null default 0,
  has_turned integer not null default 0
) without rowid;
