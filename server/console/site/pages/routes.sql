-- live
-- param: range text in (hour, day, week, month, quarter) = day
-- order: sort: asked = "requests desc, name", slow = "mean_us desc, name", work = "fill_us desc, name", useless = "case when kept >= 20 then hit_rate else 2 end, kept desc, name"

-- name: routes :many
with w as (
  select
    list_grain as grain, now, (stop - span) / list_grain * list_grain as start, stop
  from frame
  where name = :range
), a as (
  select
    s.route, sum(s.requests) as requests, sum(s.hits) as hits, sum(s.misses) as misses,
    sum(s.waits) as waits, sum(s.bypassed) as bypassed, sum(s.made) as made,
    sum(s.fill_us) as fill_us, sum(s.database_us) as database_us, sum(s.errors) as errors,
    sum(s.crawlers) as crawlers, sum(s.hits + s.misses + s.waits) as kept
  from w join route_sample s on s.grain = w.grain and s.at >= w.start and s.at < w.stop
  group by s.route
)
select
  r.name, a.*, a.fill_us * 1.0 / nullif(a.made, 0) as mean_us,
  a.database_us * 1.0 / nullif(a.made, 0) as database_mean_us,
  a.hits * 1.0 * a.fill_us / nullif(a.made, 0) as saved_us,
  a.hits * 1.0 / nullif(a.kept, 0) as hit_rate,
  case
    when a.kept >= 100 and a.hits * 10 < a.kept then 'useless'
    when a.requests >= 100 and a.bypassed * 10 > a.requests * 9 then 'private'
  end as verdict
from a join route r on r.id = a.route
order by :sort
limit 101;

-- name: shown :one?
with w as (
  select
    list_grain as grain, now, (stop - span) / list_grain * list_grain as start, stop
  from frame
  where name = :range
)
select start, now from w;
