-- live
-- param: id integer
-- param: range text in (hour, day, week, month, quarter) = day

-- name: route :one
select id, name, name like '%{%' as has_parameters from route where id = :id;

-- name: sums :one
with w as (
  select
    route_grain as grain, route_bucket as bucket, now,
    (stop - span) / route_grain * route_grain as start,
    (stop / route_bucket + 1) * route_bucket as stop
  from frame
  where name = :range
), a as (
  select
    sum(s.requests) as requests, sum(s.hits) as hits, sum(s.misses) as misses,
    sum(s.waits) as waits, sum(s.bypassed) as bypassed, sum(s.made) as made,
    sum(s.fill_us) as fill_us, sum(s.database_us) as database_us, sum(s.errors) as errors,
    sum(s.crawlers) as crawlers, sum(s.hits + s.misses + s.waits) as kept
  from w join route_sample s on s.grain = w.grain and s.at >= w.start and s.at < w.stop
  where s.route = :id
)
select
  a.*, a.fill_us * 1.0 / nullif(a.made, 0) as mean_us,
  a.database_us * 1.0 / nullif(a.made, 0) as database_mean_us,
  a.hits * 1.0 * a.fill_us / nullif(a.made, 0) as saved_us,
  a.hits * 1.0 / nullif(a.kept, 0) as hit_rate,
  case
    when a.kept >= 100 and a.hits * 10 < a.kept then 'useless'
    when a.requests >= 100 and a.bypassed * 10 > a.requests * 9 then 'private'
  end as verdict
from a;

-- name: series :many
with w as (
  select
    route_grain as grain, route_bucket as bucket, now,
    (stop - span) / route_grain * route_grain as start,
    (stop / route_bucket + 1) * route_bucket as stop
  from frame
  where name = :range
), here as (
  select
    (s.at - w.start) / w.bucket as n, sum(s.requests) as requests, sum(s.hits) as hits, sum(s.misses) as misses,
    sum(s.waits) as waits, sum(s.bypassed) as bypassed, sum(s.made) as made,
    sum(s.fill_us) as fill_us, sum(s.database_us) as database_us, sum(s.errors) as errors,
    sum(s.crawlers) as crawlers, sum(s.hits + s.misses + s.waits) as kept
  from w join route_sample s on s.grain = w.grain and s.at >= w.start and s.at < w.stop
  where s.route = :id
  group by 1
), known as (
  -- A point in which the server was watched, and nothing was asked for, is zero.
  select (s.at - w.start) / w.bucket as n, min(w.bucket, w.now + 60 - min(s.at)) as seconds
  from w join sample s
    on s.grain = min(max(w.grain, 60), 3600) and s.at >= w.start and s.at < w.stop
  group by 1
)
select
  w.start + t.n * w.bucket as at,
  coalesce(h.requests, 0) * 60.0 / k.seconds as requests,
  coalesce(h.hits, 0) * 60.0 / k.seconds as hits,
  coalesce(h.made, 0) * 60.0 / k.seconds as made,
  h.fill_us / 1e6 / nullif(h.made, 0) as fill,
  h.database_us / 1e6 / nullif(h.made, 0) as database,
  case when h.kept >= 5 then h.hits * 1.0 / h.kept end as hit_rate
from w
join tick t on t.n < (w.stop - w.start + w.bucket - 1) / w.bucket
-- The newest minutes of a route are written a minute later.
left join known k on k.n = t.n and (w.bucket > 300 or w.start + (t.n + 1) * w.bucket <= w.now)
left join here h on h.n = t.n
order by t.n;
