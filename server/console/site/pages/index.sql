-- live
-- param: range text in (hour, day, week, month, quarter) = hour
-- param: since date = null
-- param: till date = null
-- param: beside text in (before, week, none) = before

-- name: series :many
with w as (
  select
    grain, bucket, now,
    coalesce(unixepoch(:since) / bucket * bucket, stop - span) as start,
    case
      when :since is null then stop
      else min(stop, unixepoch(coalesce(:till, :since), '+1 day'))
    end as stop
  from frame
  where case
    when :since is null then name = :range
    else span >= unixepoch(coalesce(:till, :since), '+1 day') - unixepoch(:since)
  end
  order by span limit 1
), x as (
  select
    *,
    case :beside when 'before' then stop - start when 'week' then 604800 end as shift
  from w
), y as (
  -- Of days that are over there are figures of a minute and longer.
  select *, max(grain, case when shift >= 86400 then 60 else grain end) as past_grain from x
), here as (
  select
    (s.at - y.start) / y.bucket as n, nullif(sum(s.span_ms), 0) as span_ms,
    sum(s.requests) as requests, sum(s.pages) as pages, sum(s.hits) as hits, sum(s.made) as made,
    sum(s.fill_us) as fill_us, sum(s.database_us) as database_us, sum(s.refused) as refused,
    sum(s.shed) as shed, sum(s.bytes_out) as bytes_out, sum(s.server_errors) as server_errors,
    sum(s.client_errors) as client_errors, sum(s.crawlers) as crawlers, sum(s.cpu_ms) as cpu_ms,
    sum(s.busy_ms) as busy_ms, max(s.connections) as connections,
    max(s.feed_age_ms) as feed_age_ms, max(s.resident) as resident, max(s.stored) as stored
  from y join sample s on s.grain = y.grain and s.at >= y.start and s.at < y.stop
  group by 1
), past as (
  select
    (s.at + y.shift - y.start) / y.bucket as n, nullif(sum(s.span_ms), 0) as span_ms,
    sum(s.requests) as requests, sum(s.cpu_ms) as cpu_ms
  from y join sample s
    on s.grain = y.past_grain and s.at >= y.start - y.shift and s.at < y.stop - y.shift
  group by 1
)
select
  y.start + t.n * y.bucket as at,
  h.requests * 60000.0 / h.span_ms as requests,
  p.requests * 60000.0 / p.span_ms as requests_before,
  h.pages * 60000.0 / h.span_ms as pages,
  h.hits * 60000.0 / h.span_ms as hits,
  h.made * 60000.0 / h.span_ms as made,
  h.refused * 60000.0 / h.span_ms as refused,
  h.shed * 60000.0 / h.span_ms as shed,
  h.client_errors * 60000.0 / h.span_ms as client_errors,
  h.server_errors * 60000.0 / h.span_ms as server_errors,
  h.crawlers * 60000.0 / h.span_ms as crawlers,
  (h.requests - h.crawlers) * 60000.0 / h.span_ms as people,
  h.fill_us / 1e6 / nullif(h.made, 0) as fill,
  h.database_us / 1e6 / nullif(h.made, 0) as database,
  h.bytes_out * 1000.0 / h.span_ms as bytes_out,
  h.cpu_ms * 1.0 / h.span_ms as cpu,
  h.busy_ms * 1.0 / h.span_ms as machine,
  p.cpu_ms * 1.0 / p.span_ms as cpu_before,
  h.connections as connections,
  h.feed_age_ms / 1e3 as feed_age,
  h.resident as resident,
  h.stored as stored
from y
join tick t on t.n < (y.stop - y.start + y.bucket - 1) / y.bucket
left join here h on h.n = t.n
left join past p on p.n = t.n - t.n % max(1, y.past_grain / y.bucket)
order by t.n;

-- name: totals :one
with w as (
  select
    grain, bucket, now,
    coalesce(unixepoch(:since) / bucket * bucket, stop - span) as start,
    case
      when :since is null then stop
      else min(stop, unixepoch(coalesce(:till, :since), '+1 day'))
    end as stop
  from frame
  where case
    when :since is null then name = :range
    else span >= unixepoch(coalesce(:till, :since), '+1 day') - unixepoch(:since)
  end
  order by span limit 1
), x as (
  select
    *,
    case :beside when 'before' then stop - start when 'week' then 604800 end as shift
  from w
), here as (
  select
    sum(s.span_ms) as span_ms, sum(s.requests) as requests, sum(s.pages) as pages,
    sum(s.hits) as hits, sum(s.misses) as misses, sum(s.waits) as waits,
    sum(s.bypassed) as bypassed, sum(s.made) as made, sum(s.fill_us) as fill_us,
    sum(s.refused) as refused, sum(s.shed) as shed, sum(s.server_errors) as server_errors,
    sum(s.client_errors) as client_errors, sum(s.crawlers) as crawlers, sum(s.cpu_ms) as cpu_ms,
    sum(s.busy_ms) as busy_ms, sum(s.bytes_out) as bytes_out, max(s.connections) as connections,
    max(s.feed_age_ms) as feed_age_ms
  from x join sample s on s.grain = x.grain and s.at >= x.start and s.at < x.stop
), past as (
  select sum(s.span_ms) as span_ms, sum(s.requests) as requests
  from x join sample s
    on s.grain = max(x.grain, case when x.shift >= 86400 then 60 else x.grain end)
    and s.at >= x.start - x.shift and s.at < x.stop - x.shift
)
select
  h.*, h.requests * 60000.0 / nullif(h.span_ms, 0) as rate,
  p.requests * 60000.0 / nullif(p.span_ms, 0) as rate_before,
  h.cpu_ms * 1.0 / nullif(h.span_ms, 0) as cpu, h.busy_ms * 1.0 / nullif(h.span_ms, 0) as machine
from here h cross join past p;

-- name: times :many
with w as (
  select
    grain, bucket, now,
    coalesce(unixepoch(:since) / bucket * bucket, stop - span) as start,
    case
      when :since is null then stop
      else min(stop, unixepoch(coalesce(:till, :since), '+1 day'))
    end as stop
  from frame
  where case
    when :since is null then name = :range
    else span >= unixepoch(coalesce(:till, :since), '+1 day') - unixepoch(:since)
  end
  order by span limit 1
), x as (
  select
    *,
    case :beside when 'before' then stop - start when 'week' then 604800 end as shift
  from w
), y as (
  select *, max(bucket, case when stop - start <= 86400 then 60 else 3600 end) as point,
    case when stop - start <= 86400 and now - start <= 86400 then 60 else 3600 end as piece
  from x
), counted as (
  select (d.at - y.start) / y.point as n, d.bound_us, sum(d.requests) as requests
  from y join duration d on d.grain = y.piece and d.at >= y.start and d.at < y.stop
  group by 1, 2
), summed as (
  select
    n, bound_us, sum(requests) over (partition by n order by bound_us) as upto,
    sum(requests) over (partition by n) as whole
  from counted
)
select
  y.start + s.n * y.point as at,
  min(case when s.upto * 2 >= s.whole then s.bound_us end) / 1e6 as p50,
  min(case when s.upto * 100 >= s.whole * 99 then s.bound_us end) / 1e6 as p99
from y join summed s
group by s.n
order by s.n;

-- name: answered :one?
with w as (
  select
    grain, bucket, now,
    coalesce(unixepoch(:since) / bucket * bucket, stop - span) as start,
    case
      when :since is null then stop
      else min(stop, unixepoch(coalesce(:till, :since), '+1 day'))
    end as stop
  from frame
  where case
    when :since is null then name = :range
    else span >= unixepoch(coalesce(:till, :since), '+1 day') - unixepoch(:since)
  end
  order by span limit 1
), x as (
  select
    *,
    case :beside when 'before' then stop - start when 'week' then 604800 end as shift
  from w
), counted as (
  select d.bound_us, sum(d.requests) as requests
  from x join duration d
    on d.grain = case when x.stop - x.start <= 86400 and x.now - x.start <= 86400 then 60 else 3600 end
    and d.at >= x.start and d.at < x.stop
  group by 1
), summed as (
  select
    bound_us, sum(requests) over (order by bound_us) as upto, sum(requests) over () as whole
  from counted
)
select
  min(case when upto * 2 >= whole then bound_us end) as p50,
  min(case when upto * 100 >= whole * 99 then bound_us end) as p99
from summed
having count(*) > 0;

-- name: useless :one
select count(*) as routes from (
  select s.route
  from clock c join route_sample s on s.grain = 86400 and s.at >= c.at - 172800
  where s.route <> 0
  group by s.route
  having sum(s.hits + s.misses + s.waits) >= 100
    and sum(s.hits) * 10 < sum(s.hits + s.misses + s.waits)
);

-- name: attention :many
select '/now#alerts' as link, a.name as name, 'has been an alert since' as text, a.since as since
from alert a
where a.is_on
union all
select '/now' as link, c.names as name, case
    when c.ends_at is null then 'has no certificate yet'
    when c.ends_at <= k.at then 'has a certificate that has expired'
    else 'has a certificate that ends within ' || ((c.ends_at - k.at) / 86400 + 1) || ' days'
  end as text,
  null
from certificate c cross join clock k
where c.ends_at is null or c.ends_at < k.at + 8 * 86400
union all
select '#errors', sum(s.shed) || ' requests', 'were refused in the last ten minutes, as there was too much to do', null
from clock k join sample s on s.grain = 60 and s.at >= k.at - 600
having sum(s.shed) > 0;
