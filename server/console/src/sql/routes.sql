insert into route_sample (
  grain, at, route, requests, hits, misses, waits, bypassed, made, fill_us, database_us, errors,
  crawlers
)
with asked as (
  select n.id as route, j.value as figures, j.value ->> 'requests' as requests
  from json_each(:routes) j join route n on n.name = j.value ->> 'route'
), placed as (
  select
    a.*, g.seconds as grain, :now - :now % g.seconds as at,
    exists (
      select 1 from route_sample s
      where s.grain = g.seconds and s.at = :now - :now % g.seconds and s.route = a.route
    ) as is_known,
    (
      select count(*) from route_sample s
      where s.grain = g.seconds and s.at = :now - :now % g.seconds and s.route <> 0
    ) as known
  from asked a cross join route_grain g
), ranked as (
  select
    *,
    known + row_number() over (partition by grain, is_known order by requests desc, route) as rank
  from placed
), chosen as (
  -- A period has at most so many routes of its own.
  select *, case when is_known or rank <= :most then route else 0 end as place from ranked
)
select
  grain, at, place, sum(requests), sum(figures ->> 'hits'), sum(figures ->> 'misses'),
  sum(figures ->> 'waits'), sum(figures ->> 'bypassed'), sum(figures ->> 'made'),
  sum(figures ->> 'fill_us'), sum(figures ->> 'database_us'), sum(figures ->> 'errors'),
  sum(figures ->> 'crawlers')
from chosen
group by grain, at, place
on conflict (grain, at, route) do update set
  requests = requests + excluded.requests,
  hits = hits + excluded.hits,
  misses = misses + excluded.misses,
  waits = waits + excluded.waits,
  bypassed = bypassed + excluded.bypassed,
  made = made + excluded.made,
  fill_us = fill_us + excluded.fill_us,
  database_us = database_us + excluded.database_us,
  errors = coalesce(errors + excluded.errors, errors, excluded.errors),
  crawlers = coalesce(crawlers + excluded.crawlers, crawlers, excluded.crawlers)
