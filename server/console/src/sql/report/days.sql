-- Each day beside the day before, of which only the hours count that the day has had too.
with hour as (
  select * from sample where grain = 3600 and at >= :from - 86400 and at < :till
), newest as (
  select max(at) as at from hour
), day as (
  select
    at / 86400 as day, sum(requests) as requests, sum(pages) as pages, sum(hits) as hits,
    sum(refused + shed) as refused, sum(bytes_out) as bytes, sum(crawlers) as crawlers,
    sum(successes) as ok, sum(redirects) as moved, sum(client_errors) as wrong,
    sum(server_errors) as failed,
    sum(requests) filter (where at + 86400 <= (select at from newest)) as comparable
  from hour
  group by 1
), counted as (
  select at / 86400 as day, bound_us, sum(requests) as requests
  from duration
  where grain = 3600 and at >= :from and at < :till
  group by 1, 2
), summed as (
  select
    day, bound_us, sum(requests) over (partition by day order by bound_us) as upto,
    sum(requests) over (partition by day) as whole
  from counted
), time as (
  select
    day, min(case when upto * 2 >= whole then bound_us end) as p50,
    min(case when upto * 100 >= whole * 99 then bound_us end) as p99
  from summed
  group by 1
)
select json_object(
  'day', date(d.day * 86400, 'unixepoch'), 'requests', d.requests,
  'requests_before', past.comparable, 'pages', d.pages, 'hits', d.hits, 'refused', d.refused,
  'bytes', d.bytes, 'crawlers', d.crawlers, '2xx', d.ok, '3xx', d.moved, '4xx', d.wrong,
  '5xx', d.failed, 'p50_us', time.p50, 'p99_us', time.p99
)
from day d
left join day past on past.day = d.day - 1
left join time on time.day = d.day
where d.day >= :from / 86400
order by d.day
