-- Lengths of time for which figures are summed, each with the time for which they are kept.
create table grain (
  seconds integer primary key,
  keep integer not null
) without rowid;
insert into grain values (10, 86400), (60, 7776000), (3600, 7776000);

-- The same for the figures of routes.
create table route_grain (
  seconds integer primary key,
  keep integer not null
) without rowid;
insert into route_grain values (60, 86400), (3600, 7776000), (86400, 7776000);

-- When the newest sample was taken, and when the server started.
create table clock (
  id integer primary key check (id = 1),
  at integer not null,
  started integer not null
);

-- Figures of the server. What is null was not counted.
create table sample (
  grain integer not null,
  at integer not null,
  span_ms integer not null,
  requests integer not null,
  pages integer not null,
  hits integer not null,
  misses integer not null,
  waits integer not null,
  bypassed integer not null,
  made integer not null,
  fill_us integer not null,
  database_us integer not null,
  refused integer not null,
  shed integer not null,
  bytes_out integer not null,
  successes integer,
  redirects integer,
  client_errors integer,
  server_errors integer,
  crawlers integer,
  cpu_ms integer,
  busy_ms integer,
  connections integer,
  feed_age_ms integer,
  resident integer,
  stored integer,
  entries integer,
  streams integer,
  primary key (grain, at)
) without rowid;

-- Times to answer: how many requests took at most so long, and longer than the next lower bound.
create table duration (
  grain integer not null,
  at integer not null,
  bound_us integer not null,
  requests integer not null,
  primary key (grain, at, bound_us)
) without rowid;

-- Names of routes; 0 stands for all that had no place of their own.
create table route (
  id integer primary key,
  name text not null unique
);
insert into route values (0, 'other routes');

create table route_sample (
  grain integer not null,
  at integer not null,
  route integer not null,
  requests integer not null,
  hits integer not null,
  misses integer not null,
  waits integer not null,
  bypassed integer not null,
  made integer not null,
  fill_us integer not null,
  database_us integer not null,
  errors integer,
  crawlers integer,
  primary key (grain, at, route)
) without rowid;

-- The state of now: figures and words by topic.
create table fact (
  topic text not null,
  place integer not null,
  name text not null,
  unit text not null,
  value,
  primary key (topic, name)
) without rowid;

create table certificate (
  names text primary key,
  ends_at integer,
  tried_at integer,
  failure text
) without rowid;

-- Explanations of addresses that the owner has asked for; the newest.
create table explained (
  id integer primary key,
  at integer not null,
  host text,
  target text not null,
  body text not null
);

-- Ranges of time that pages show: by which figures, how many seconds a point of a chart has, and by
-- which figures all routes are listed.
create table range (
  name text primary key,
  span integer not null,
  grain integer not null,
  bucket integer not null,
  route_grain integer not null,
  route_bucket integer not null,
  list_grain integer not null
) without rowid;
insert into range values
  ('hour', 3600, 10, 30, 60, 60, 60),
  ('day', 86400, 60, 300, 60, 300, 3600),
  ('week', 604800, 60, 1800, 3600, 3600, 3600),
  ('month', 2592000, 3600, 7200, 86400, 86400, 86400),
  ('quarter', 7776000, 3600, 21600, 86400, 86400, 86400);

-- The ranges that end now, on whole points.
create view frame as
select
  r.name, r.span, r.grain, r.bucket, r.route_grain, r.route_bucket, r.list_grain,
  c.at as now,
  (c.at / max(r.bucket, 60) + 1) * max(r.bucket, 60) as stop
from range r cross join clock c;

-- The points of a chart.
create table tick (n integer primary key);
insert into tick
with recursive number (n) as (select 0 union all select n + 1 from number where n < 399)
select n from number;
