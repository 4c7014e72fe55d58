-- Routes by their requests; those of the last day beside those of the day before.
with last as (
  select max(at) as at, max(at) / 86400 * 86400 as day
  from route_sample where grain = 3600 and at >= :from and at < :till
), sums as (
  select
    s.route, sum(s.requests) filter (where s.at >= :from) as requests,
    sum(s.hits) filter (where s.at >= :from) as hits,
    sum(s.made) filter (where s.at >= :from) as made,
    sum(s.fill_us) filter (where s.at >= :from) as fill_us,
    sum(s.errors) filter (where s.at >= :from) as errors,
    sum(s.crawlers) filter (where s.at >= :from) as crawlers,
    sum(s.requests) filter (where s.at >= last.day) as last_day,
    sum(s.requests) filter (
      where s.at >= last.day - 86400 and s.at < last.day and s.at + 86400 <= last.at
    ) as day_before
  from last join route_sample s
    on s.grain = 3600 and s.at >= min(:from, last.day - 86400) and s.at < :till
  group by 1
)
select json_object(
  'route', r.name, 'requests', s.requests, 'hits', s.hits, 'made', s.made, 'fill_us', s.fill_us,
  'errors', s.errors, 'crawlers', s.crawlers, 'requests_of_last_day', s.last_day,
  'requests_before', s.day_before
)
from sums s join route r on r.id = s.route
where s.requests > 0
order by s.requests desc, r.name
limit :top
